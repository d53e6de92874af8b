package mesh_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol"
)

// multicastAddress is an address of this machine on a network that carries multicast.
func multicastAddress(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
				return "/ip4/" + n.IP.String() + "/tcp/0"
			}
		}
	}
	t.Skip("no network interface of this machine carries multicast")
	return ""
}

func nearby(address string) func(*mesh.Config) {
	return func(c *mesh.Config) { c.Listen, c.Nearby = []string{address}, true }
}

// Agents of one network find another without being told an address, hear another's
// presences, and need nobody who introduces them.
func TestAgentsOfOneNetworkFindAnother(t *testing.T) {
	at := multicastAddress(t)
	m := newMarket(t)
	bank := m.start("bank", nearby(at))
	site := m.start("site", nearby(at))
	bank.Send(presence(protocol.KindBank, 1))
	site.Send(presence(protocol.KindResource, 1))
	start := time.Now()
	user := m.start("user", nearby(at))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := user.Joined(ctx); err != nil {
		t.Fatal(err)
	}
	user.awaitPresences(map[protocol.AgentID]bool{bank.Self(): true, site.Self(): true})
	t.Logf("two agents were found after %s", time.Since(start))
}

// Whoever is found has to show a credential like anybody: one of another market is
// cut off, and the market goes on.
func TestNearbyAgentsAreNotTrusted(t *testing.T) {
	at := multicastAddress(t)
	ours, theirs := newMarket(t), newMarket(t)
	stranger := theirs.start("stranger", nearby(at))
	bank := ours.start("bank", nearby(at))
	user := ours.start("user", nearby(at))
	user.awaitKnown(bank.Self())
	eventually(t, "the stranger was met, and cut off", func() bool { return user.Counters().CutOff+bank.Counters().CutOff+stranger.Counters().CutOff > 0 })
	for _, a := range []*agent{user, bank} {
		if a.knows(stranger.Self()) {
			t.Errorf("%s knows an agent whose certificate does not count", a.Self())
		}
	}
}

func TestAnEmptyNetworkIsReported(t *testing.T) {
	m := newMarket(t)
	user := m.start("user", nearby(multicastAddress(t)))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := user.Joined(ctx); err == nil || !strings.Contains(err.Error(), "found no agent on this network") {
		t.Errorf("got %v", err)
	}
}

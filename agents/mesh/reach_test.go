package mesh_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"

	"ramp/agents/mesh"
	"ramp/agents/porttest"
)

// relaying starts an agent that announces where it listens, so that it relays.
func (m *market) relaying(name string) *agent {
	m.t.Helper()
	at := kept(m.t)
	return m.start(name, func(c *mesh.Config) { c.Listen, c.Announce = at, at })
}

// kept is an address that nobody else takes while its agent is down.
func kept(t testing.TB) []string {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)}
}

// closed starts an agent that only relays reach: it announces no address of its own.
func (m *market) closed(name string, by []string, change func(*mesh.Config)) *agent {
	return m.start(name, func(c *mesh.Config) {
		c.Announce, c.Bootstrap = []string{"/p2p-circuit"}, by
		if change != nil {
			change(c)
		}
	})
}

// through are the addresses of an agent at a relay.
func through(relay, to *agent) string {
	for _, k := range relay.Known() {
		if k.Agent == to.Self() {
			return relay.Addresses()[0] + "/p2p-circuit/p2p/" + k.Peer
		}
	}
	relay.t.Fatalf("%s does not know %s", relay.Self(), to.Self())
	return ""
}

// reserves waits until a relay has a number of reservations.
func (a *agent) reserves(n int) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("%s has %d reservations", a.Self(), n), func() bool { return a.Reach().Reservations == n })
}

// hears reports whether a query arrives soon.
func (a *agent) hears(n int) bool {
	soon := time.After(answered)
	for {
		select {
		case m := <-a.inbox:
			if m.Conversation == fmt.Sprintf("c-%d", n) {
				return true
			}
		case <-soon:
			return false
		}
	}
}

// Two agents that only a relay reaches meet, exchange their certificates over the relayed
// connection and then messages and files.
func TestClosedAgentsMeetThroughARelay(t *testing.T) {
	m := newMarket(t)
	r := m.relaying("relay")
	site := m.closed("site", r.Addresses(), func(c *mesh.Config) {
		c.Files = func(s *mesh.Stream) error { _, err := s.Write([]byte(s.Agent().Name())); return err }
	})
	r.reserves(1)
	user := m.closed("user", []string{through(r, site)}, nil)
	user.awaitKnown(site.Self())
	user.Send(query(1, site.Self()))
	if got := site.awaitQuery(1); got.Sender != user.Self() {
		t.Errorf("the message is from %s", got.Sender)
	}
	if now := user.Reach(); now.Relayed == 0 || now.Through[site.Self()] != r.Self() || now.Kind == mesh.ReachPublic {
		t.Errorf("the user's connections: %+v", now)
	}
	s, err := user.OpenFiles(context.Background(), site.Self())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Most() != mesh.RelayData {
		t.Errorf("the connection carries %d bytes, want %d", s.Most(), mesh.RelayData)
	}
	if got, err := io.ReadAll(io.LimitReader(s, 4)); err != nil || string(got) != "user" {
		t.Errorf("%q, %v", got, err)
	}
}

// Whoever meets a relay has a place with it before the next look at who relays.
func TestARelayIsUsedOnceItIsMet(t *testing.T) {
	before := *mesh.RelaySearch
	*mesh.RelaySearch = time.Hour
	t.Cleanup(func() { *mesh.RelaySearch = before })
	m := newMarket(t)
	r := m.relaying("relay")
	m.closed("site", r.Addresses(), nil)
	r.reserves(1)
}

// A relay that dies, is full, or grants places that it does not keep leaves the other one.
func TestTheOtherRelayServesWhenOneFails(t *testing.T) {
	t.Run("it dies", func(t *testing.T) {
		m := newMarket(t)
		one, two := m.relaying("one"), m.relaying("two")
		site := m.closed("site", slices.Concat(one.Addresses(), two.Addresses()), nil)
		one.reserves(1)
		two.reserves(1)
		user := m.closed("user", []string{through(one, site), two.Addresses()[0], through(two, site)}, nil)
		user.awaitKnown(site.Self())
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		n := 0
		eventually(t, "the site hears", func() bool {
			n++
			user.Send(query(n, site.Self()))
			return site.hears(n)
		})
	})
	for name, wrong := range map[string]relay.Resources{
		"it is full": {BufferSize: 4096, MaxReservationsPerPeer: 1},
		"it lies":    {BufferSize: 4096, MaxReservations: 8, MaxReservationsPerPeer: 1, MaxReservationsPerIP: 8, MaxReservationsPerASN: 8, ReservationTTL: mesh.RelayTime},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMarket(t)
			one, two := m.relaying("one"), m.relaying("two")
			if err := mesh.RelayWith(one.Mesh, wrong); err != nil {
				t.Fatal(err)
			}
			site := m.closed("site", slices.Concat(one.Addresses(), two.Addresses()), nil)
			two.reserves(1)
			one.awaitKnown(site.Self())
			user := m.closed("user", []string{through(one, site), two.Addresses()[0], through(two, site)}, nil)
			user.awaitKnown(site.Self())
			user.Send(query(1, site.Self()))
			site.awaitQuery(1)
		})
	}
}

// A relay serves nobody who has not shown a certificate.
func TestARelayRefusesStrangers(t *testing.T) {
	m := newMarket(t)
	r := m.relaying("relay")
	stranger := newRaw(t, m.credential("mallory"), r)
	reserve := func() error {
		_, err := client.Reserve(context.Background(), stranger.Host, peer.AddrInfo{ID: stranger.victim})
		return err
	}
	if err := reserve(); err == nil || !strings.Contains(err.Error(), "PERMISSION_DENIED") {
		t.Errorf("a stranger reserves: %v", err)
	}
	if r.Reach().Reservations != 0 {
		t.Errorf("%+v", r.Reach())
	}
}

func TestAnnouncedAddressesCanBeDialled(t *testing.T) {
	for _, good := range []string{"/ip4/203.0.113.7/tcp/4101", "/dns4/site.example/udp/4101/quic-v1", "/p2p-circuit"} {
		if err := mesh.CheckAnnounce([]string{good}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"/ip4/0.0.0.0/tcp/4101", "/ip4/203.0.113.7", "site.example:4101"} {
		if err := mesh.CheckAnnounce([]string{bad}); err == nil || !strings.Contains(err.Error(), "announce") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Agents of a network with IPv6 only find each other.
func TestIPv6Only(t *testing.T) {
	m := newMarket(t)
	six := func(c *mesh.Config) { c.Listen = []string{"/ip6/::1/tcp/0"} }
	a, b := m.pair(six)
	a.Send(query(1, b.Self()))
	b.awaitQuery(1)
}

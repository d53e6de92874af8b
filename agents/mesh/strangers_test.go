package mesh_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"sync/atomic"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/agents/mesh"
)

// crowd opens TCP connections to an agent from many addresses of this machine, and says
// nothing on them.
func crowd(t *testing.T, victim *agent, connections, addresses int) {
	t.Helper()
	a, err := ma.NewMultiaddr(victim.Known0())
	if err != nil {
		t.Fatal(err)
	}
	to, err := manet.ToNetAddr(a)
	if err != nil {
		t.Fatal(err)
	}
	for i := range connections {
		from := netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i%addresses)})
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
		c, err := d.Dial("tcp", to.String())
		if err != nil {
			t.Skipf("this machine has no such loopback address: %v", err) // not Linux
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

// warnings counts the lines of a log about strangers.
type warnings struct {
	slog.Handler
	n *atomic.Int64
}

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.n.Add(1)
	}
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func TestFourThousandSilentConnectionsKeepNobodyOut(t *testing.T) {
	m := newMarket(t)
	lines := &atomic.Int64{}
	victim := m.start("victim", func(c *mesh.Config) { c.Log = slog.New(warnings{slog.DiscardHandler, lines}) })
	begun := time.Now()
	crowd(t, victim, 4000, 20)
	var friend *agent
	for i := range 4 {
		a := m.joined(fmt.Sprintf("newcomer%d", i), victim)
		victim.awaitKnown(a.Self())
		a.awaitKnown(victim.Self())
		a.Send(query(i, victim.Self()))
		victim.awaitQuery(i)
		friend = a
	}
	crowd(t, victim, 400, 20)
	friend.Send(query(9, victim.Self())) // known agents lose nothing
	victim.awaitQuery(9)
	eventually(t, "there is a line about it", func() bool { return lines.Load() > 0 })
	if n, most := lines.Load(), 1+int64(time.Since(begun)/mesh.StrangersLog); n > most {
		t.Errorf("%d lines in the log, want at most %d: one a minute", n, most)
	}
}

// A peer that secures the channel and then shows no certificate has no more right.
func TestSecuredStrangersKeepNobodyOut(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	raws := make([]*raw, 3)
	for i := range raws {
		raws[i] = newRaw(t, m.credential(fmt.Sprint("mute", i)), victim)
	}
	dropped := mesh.CrowdOut(victim.Mesh, 2)
	eventually(t, "the first is dropped", func() bool { return len(raws[0].Network().Conns()) == 0 })
	if dropped != 1 || len(raws[1].Network().Conns()) != 1 || len(raws[2].Network().Conns()) != 1 {
		t.Errorf("%d dropped; the others have %d and %d connections", dropped, len(raws[1].Network().Conns()), len(raws[2].Network().Conns()))
	}
	key := m.credential("late")
	newRaw(t, key, victim).greeted(key)
	if n := mesh.CrowdOut(victim.Mesh, 2); n != 0 {
		t.Errorf("%d dropped, although the newest has shown its certificate", n)
	}
}

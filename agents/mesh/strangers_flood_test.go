package mesh_test

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"ramp/agents/mesh"
)

// nobody is a peer without a certificate.
func nobody(t *testing.T) host.Host {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.DisableMetrics(), libp2p.DisableRelay(),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Security(noise.ID, noise.New), libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// besiege connects a stranger again and again, and opens as many streams as it can.
func besiege(ctx context.Context, h host.Host, victim peer.AddrInfo, held *atomic.Int64) {
	for ctx.Err() == nil {
		h.Network().(*swarm.Swarm).Backoff().Clear(victim.ID)
		_ = h.Connect(ctx, victim) // it may be kept out for now
		for range 30 {
			s, err := h.Network().NewStream(ctx, victim.ID)
			if err != nil {
				break
			}
			_ = s.SetProtocol(mesh.ProtocolACL)
			if _, err := s.Write([]byte("\x13/multistream/1.0.0\n\x0c/ramp/acl/1\n")); err == nil {
				held.Add(1)
			}
		}
		select { // an attacker of the same machine must leave some of it to the victim
		case <-ctx.Done():
		case <-time.After(time.Second + rand.N(4*time.Second)):
		}
	}
}

// siegeTime is how long newcomers join beside an attack: RAMP_SIEGE (such as 1m), or until
// a few have.
func siegeTime(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("RAMP_SIEGE") + "0s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newcomers join one after another, for a time and three at least. It returns how long each
// took until its first message was heard, in order.
func newcomers(m *market, victim *agent, name string, last time.Duration) []time.Duration {
	var took []time.Duration
	for first := time.Now(); len(took) < 3 || time.Since(first) < last; {
		n, begun := len(took), time.Now()
		a := m.joined(fmt.Sprint(name, n), victim)
		a.awaitKnown(victim.Self())
		a.Send(query(n, victim.Self()))
		victim.awaitQuery(n)
		took = append(took, time.Since(begun))
		if err := a.Close(); err != nil {
			m.t.Fatal(err)
		}
	}
	slices.Sort(took)
	return took
}

// Many strangers that open what they can, and come back whenever they are thrown out, keep
// no newcomer with a certificate out, and hold little memory. RAMP_SIEGE has 512 of them
// attack for longer.
func TestStrangersKeepNobodyOut(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	info, err := peer.AddrInfoFromString(victim.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	attackers, last := 160, siegeTime(t)
	if last > 0 {
		attackers = 512
	}
	alone := newcomers(m, victim, "early", 0)
	ctx, stop := context.WithCancel(context.Background())
	var held atomic.Int64
	var siege sync.WaitGroup
	defer siege.Wait()
	defer stop()
	for range attackers {
		h := nobody(t)
		siege.Go(func() { besiege(ctx, h, *info, &held) })
	}
	eventually(t, "the siege has begun", func() bool { return held.Load() > 100 })
	beside := newcomers(m, victim, "late", last)
	t.Logf("%d newcomers beside %d strangers: median %s, longest %s; alone: median %s",
		len(beside), attackers, beside[len(beside)/2], beside[len(beside)-1], alone[len(alone)/2])
	if n := mesh.Strangers(victim.Mesh); n > mesh.MaxStrangers {
		t.Errorf("%d strangers have a place, want at most %d", n, mesh.MaxStrangers)
	}
	if streams, memory := mesh.StrangerUse(victim.Mesh); streams > mesh.StreamsPerStranger || memory > mesh.MaxStrangers*mesh.StrangerMemory {
		t.Errorf("a stranger has %d streams, and all have %d bytes", streams, memory)
	}
}

// A stranger that wants one more stream than it may have does not get it.
func TestStrangersHaveTwoStreams(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	info, err := peer.AddrInfoFromString(victim.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	h := nobody(t)
	if err := h.Connect(t.Context(), *info); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, mesh.StreamsPerStranger+1)
	for _, id := range []libp2pprotocol.ID{mesh.ProtocolACL, mesh.ProtocolPresence, mesh.ProtocolIntroductions} {
		s, err := h.NewStream(t.Context(), info.ID, id)
		if err != nil {
			refused <- err
			continue
		}
		go func() {
			_, err := s.Read(make([]byte, 1)) // nothing comes before a card
			refused <- err
		}()
	}
	eventually(t, "a stream is refused", func() bool {
		if n, _ := mesh.StrangerUse(victim.Mesh); n > mesh.StreamsPerStranger {
			t.Fatalf("a stranger has %d streams, want at most %d", n, mesh.StreamsPerStranger)
		}
		return len(refused) > 0
	})
}

// Strangers that only connect have a number of places, and no more.
func TestStrangersHaveFewPlaces(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	info, err := peer.AddrInfoFromString(victim.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	all := make([]host.Host, mesh.MaxStrangers+8)
	for i := range all {
		all[i] = nobody(t)
	}
	ctx, stop := context.WithCancel(t.Context())
	var siege sync.WaitGroup
	defer siege.Wait()
	defer stop()
	for _, h := range all { // at once, since each keeps its place for a time only
		siege.Go(func() { _ = h.Connect(ctx, *info) }) // the last ones may be kept out
	}
	eventually(t, "the places are taken", func() bool { return mesh.Strangers(victim.Mesh) >= mesh.MaxStrangers })
	if n := mesh.Strangers(victim.Mesh); n > mesh.MaxStrangers {
		t.Errorf("%d strangers have a place, want at most %d", n, mesh.MaxStrangers)
	}
}

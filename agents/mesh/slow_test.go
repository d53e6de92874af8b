package mesh_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Members that open streams of every kind, ask on them and read nothing hold a bounded
// number of goroutines and bytes, and the messages to them come back. Others are served.
func TestSlowReadersHoldNobodyUp(t *testing.T) {
	m := newMarket(t)
	file := make([]byte, 1<<20)
	victim := m.start("victim", func(c *mesh.Config) {
		c.HearCalls = true
		c.Enrol = func(context.Context, mesh.Applicant) ([]byte, bool) { return file[:mesh.MaxEnrol], false }
		c.Files = func(s *mesh.Stream) error {
			for {
				if _, err := s.Write(file); err != nil { // Config.Files sets deadlines of its own
					return err
				}
			}
		}
	})
	friend := m.joined("friend", victim)
	friend.awaitKnown(victim.Self())
	victim.awaitKnown(friend.Self())
	goroutines, memory := runtime.NumGoroutine(), heap()
	const slow = 4
	kinds := []libp2pprotocol.ID{
		mesh.ProtocolACL, mesh.ProtocolPresence, mesh.ProtocolIntroductions, mesh.ProtocolClock, mesh.ProtocolFiles, mesh.ProtocolEnrolment,
		"/meshsub/1.1.0",
	}
	var to []protocol.AgentID
	for i := range slow {
		to = append(to, stuck(m, fmt.Sprint("slow", i), victim, kinds))
	}
	big := protocol.Message{
		Performative: protocol.Refuse, Receivers: to, Protocol: protocol.ProtocolRequest, Conversation: "c-0", ReplyWith: "r-0",
		Body: message.Refused(protocol.CodeBusy, string(bytes.Repeat([]byte("x"), protocol.MaxWords))),
	}
	for i := range 2 * mesh.QueueLength {
		victim.Send(big)
		victim.Send(callForProposals())
		if i%100 == 0 {
			friend.Send(query(i+1, victim.Self()))
			victim.awaitQuery(i + 1)
		}
	}
	victim.awaitUndeliverable(0)
	// Of both sides together, as the slow ones run in this process.
	if grown, most := runtime.NumGoroutine()-goroutines, slow*6*mesh.StreamsPerPeer; grown > most {
		t.Errorf("%d goroutines more, want at most %d", grown, most)
	}
	if grown, most := heap()-memory, int64(slow*(32<<20)); grown > most {
		t.Errorf("%d bytes more, want at most %d", grown, most)
	}
	friend.Send(query(9999, victim.Self()))
	victim.awaitQuery(9999)
	m.joined("late", victim).awaitKnown(victim.Self())
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// stuck connects a member that opens as many streams of each kind as it may, and neither
// reads these nor those that the victim opens.
func stuck(m *market, name string, victim *agent, kinds []libp2pprotocol.ID) protocol.AgentID {
	key := m.credential(name)
	r := newRaw(m.t, key, victim)
	for _, id := range kinds {
		r.SetStreamHandler(id, func(network.Stream) {})
	}
	r.greeted(key)
	garbage := frame([]byte("nonsense that is answered"))
	for _, id := range kinds {
		for range mesh.StreamsPerKind {
			s, err := r.NewStream(context.Background(), r.victim, id)
			if err != nil {
				break // one more than it may have
			}
			_, _ = s.Write(append(frame(cardOf(key)), garbage...)) // it may have been refused
		}
	}
	return key.ID
}

// A peer that was cut off and dials again at once, for ever, keeps nobody out and leaves
// nothing behind.
func TestAPeerThatRedialsForEverKeepsNobodyOut(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	for name, key := range map[string]*identity.Credential{"a member": m.credential("mallory"), "a stranger": other.credential("mallory")} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			victim := m.start("victim", nil)
			friend := m.joined("friend", victim)
			friend.awaitKnown(victim.Self())
			var dialers []*raw
			for range 4 {
				dialers = append(dialers, newRaw(t, key, victim))
			}
			if name == "a member" {
				dialers[0].greeted(key)
			}
			_, _ = dialers[0].open(mesh.ProtocolACL).Write(frame(nil)) // an empty card: the answer is a reset
			dialers[0].awaitCutOff()
			stop, dials := redialling(dialers)
			for i := range 4 {
				a := m.joined(fmt.Sprint("newcomer", i), victim)
				victim.awaitKnown(a.Self())
				friend.Send(query(i, victim.Self()))
				victim.awaitQuery(i)
			}
			eventually(t, "it has dialled 200 times", func() bool { return dials.Load() >= 200 })
			stop()
			eventually(t, "nothing is left of it", func() bool { return mesh.Strangers(victim.Mesh) == 0 })
		})
	}
}

// redialling has peers dial their victim until it is stopped, and counts that.
func redialling(dialers []*raw) (stop func(), dials *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	dials = &atomic.Int64{}
	for _, r := range dialers {
		to := peer.AddrInfo{ID: r.victim, Addrs: r.Peerstore().Addrs(r.victim)}
		all.Go(func() {
			for ctx.Err() == nil {
				r.Network().(*swarm.Swarm).Backoff().Clear(r.victim)
				_ = r.Connect(ctx, to) // refused, at once or a moment later
				dials.Add(1)
				_ = r.Network().ClosePeer(r.victim)
			}
		})
	}
	return func() { cancel(); all.Wait() }, dials
}

// Strangers, who can have a new key each time, do not fill the log: after a few lines they
// are counted.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	lines := &atomic.Int64{}
	victim := m.start("victim", func(c *mesh.Config) { c.Log = slog.New(warnings{slog.DiscardHandler, lines}) })
	const strangers = 2 * mesh.StrangersNamed
	for i := range strangers {
		key := other.credential(fmt.Sprint("stranger", i))
		_, _ = newRaw(t, key, victim).open(mesh.ProtocolACL).Write(frame(cardOf(key))) // the answer is a reset
	}
	eventually(t, "all are cut off", func() bool { return victim.Counters().CutOff >= strangers })
	if n := lines.Load(); n < mesh.StrangersNamed || n > mesh.StrangersNamed+2 {
		t.Errorf("%d lines in the log about %d strangers", n, strangers)
	}
	before, key := lines.Load(), m.credential("member") // whose line nobody takes
	r := newRaw(t, key, victim)
	r.greeted(key)
	_, _ = r.open(mesh.ProtocolACL).Write(frame(nil))
	r.awaitCutOff()
	if lines.Load() == before {
		t.Error("a member was cut off without a line")
	}
}

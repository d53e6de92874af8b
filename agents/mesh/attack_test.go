package mesh_test

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/big"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"context"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

func TestAPeerWithoutAValidCredentialIsDropped(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	mallory, alice := m.credential("mallory"), m.credential("alice")
	foreign := other.credential("mallory")
	for _, c := range []struct {
		name string
		key  *identity.Credential
		card []byte
	}{
		{"no card but other bytes", mallory, []byte("hello")},
		{"an empty card", mallory, nil},
		{"a certificate of a foreign authority", foreign, cardOf(foreign)},
		{"the certificate of another agent", mallory, cardOf(alice)},
		{"a card that is too long", mallory, make([]byte, mesh.MaxCard+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.t = t
			victim := m.start("victim", nil)
			r := newRaw(t, c.key, victim)
			s := r.open(mesh.ProtocolACL)
			_, _ = s.Write(frame(c.card)) // the answer may be a reset before the end
			r.awaitCutOff()
			if k := victim.Known(); len(k) != 0 {
				t.Errorf("knows %+v", k)
			}
		})
	}
}

func TestAPeerWithAnExpiredCertificateIsDropped(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", func(c *mesh.Config) { c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } })
	c := m.credential("late")
	r := newRaw(t, c, victim)
	r.write(r.open(mesh.ProtocolACL), frame(cardOf(c)))
	r.awaitCutOff()
}

func TestASilentPeerIsDropped(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", func(c *mesh.Config) { c.Now = func() time.Time { return time.Now().Add(mesh.HelloTimeout) } })
	newRaw(t, m.credential("silent"), victim).awaitCutOff()
}

// changing is a trust that can be exchanged.
type changing struct{ atomic.Pointer[identity.Trust] }

func (c *changing) Verify(chain [][]byte, at time.Time) (identity.Peer, error) {
	return c.Load().Verify(chain, at)
}

func TestAnAgentThatIsRevokedMeanwhileIsDropped(t *testing.T) {
	m := newMarket(t)
	trust := &changing{}
	trust.Store(m.trust)
	a := m.start("alice", func(c *mesh.Config) { c.Trust = trust })
	var serial *big.Int
	b := m.start("bob", func(c *mesh.Config) {
		c.Bootstrap = a.Addresses()
		serial = c.Credential.Chain[0].SerialNumber
	})
	a.awaitKnown(b.Self())
	list, err := m.ca.Revoke(nil, []*big.Int{serial}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	revoking, err := identity.NewTrust(m.ca.CertPEM(), list)
	if err != nil {
		t.Fatal(err)
	}
	trust.Store(revoking)
	eventually(t, "bob is dropped", func() bool { return !a.knows(b.Self()) && a.Counters().CutOff > 0 })
}

// Whoever sends it is known, so the log names it.
func TestAFrameOf100MBIsCutOffBeforeItIsAllocated(t *testing.T) {
	m := newMarket(t)
	w := who{slog.DiscardHandler, make(chan string, 1)}
	victim := m.start("victim", func(cfg *mesh.Config) { cfg.Log = slog.New(w) })
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	s := r.greeted(c)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = s.Write(binary.AppendUvarint(nil, 100<<20)) // the answer is a reset
	r.awaitCutOff()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
	if got := <-w.agents; got != "agent "+string(c.ID) {
		t.Errorf("cut off: %q, want %s", got, c.ID)
	}
}

// who collects what a log says of whom.
type who struct {
	slog.Handler
	agents chan string
}

func (w who) WithAttrs(all []slog.Attr) slog.Handler {
	for _, a := range all {
		select {
		case w.agents <- a.Key + " " + a.Value.String():
		default: // once more
		}
	}
	return w
}

func TestALargeFrameIsAllocatedAsItArrives(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	s := r.greeted(c)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.write(s, append(binary.AppendUvarint(nil, protocol.MaxMessage), make([]byte, 100)...))
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_, _ = readRawFrame(bufio.NewReader(s)) // returns when the victim has given up
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > protocol.MaxMessage/2 {
		t.Errorf("%d bytes allocated for 100", grown)
	}
}

func TestTenThousandStreamsAreBounded(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	friend := m.joined("friend", victim)
	friend.awaitKnown(victim.Self())
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	card := frame(cardOf(c))
	before := runtime.NumGoroutine()
	most := 0
	for i := range 10_000 {
		s, err := r.Network().NewStream(context.Background(), r.victim)
		if err != nil {
			t.Logf("%d streams: %v", i, err)
			break // cut off
		}
		_ = s.SetProtocol(mesh.ProtocolACL)
		_, _ = s.Write(append([]byte("\x13/multistream/1.0.0\n\x0c/ramp/acl/1\n"), card...))
		most = max(most, runtime.NumGoroutine()-before)
	}
	// Of both sides together, this peer's own included.
	if limit := 20 * mesh.StreamsPerPeer; most > limit {
		t.Errorf("%d goroutines more, want at most %d", most, limit)
	}
	r.awaitCutOff()
	friend.Send(query(1, victim.Self()))
	victim.awaitQuery(1)
}

func TestAFloodIsCutOffWhileAnotherPeerIsServed(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	friend := m.joined("friend", victim)
	friend.awaitKnown(victim.Self())
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	s := r.greeted(c)
	b, err := codec.Encode(query(0, victim.Self()))
	if err != nil {
		t.Fatal(err)
	}
	var burst []byte
	for range 100 {
		burst = append(burst, frame(b)...)
	}
	flooded := make(chan int, 1)
	go func() {
		n := 0
		for ; n < 10_000_000; n += 100 {
			if _, err := s.Write(burst); err != nil {
				break
			}
		}
		flooded <- n
	}()
	for i := 1; ; i++ {
		friend.Send(query(i, victim.Self()))
		victim.awaitQuery(i)
		select {
		case n := <-flooded:
			t.Logf("cut off after %d messages; %d of another peer were served meanwhile", n, i)
			r.awaitCutOff()
			friend.Send(query(i+1, victim.Self()))
			victim.awaitQuery(i + 1)
			return
		default:
		}
	}
}

func TestGarbageIsForgivenAFewTimesAndThenCutOff(t *testing.T) {
	m := newMarket(t)
	victim := m.start("victim", nil)
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	s := r.greeted(c)
	garbage := make([]byte, 300)
	if _, err := rand.Read(garbage); err != nil {
		t.Fatal(err)
	}
	r.write(s, frame(garbage))
	b, err := codec.Encode(query(1, victim.Self()))
	if err != nil {
		t.Fatal(err)
	}
	r.write(s, frame(b))
	victim.awaitQuery(1)
	for range 100 {
		if _, err := s.Write(frame(garbage)); err != nil {
			break
		}
	}
	r.awaitCutOff()
}

func TestACutOffEnds(t *testing.T) {
	m := newMarket(t)
	var ahead atomic.Int64
	victim := m.start("victim", func(c *mesh.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	c := m.credential("mallory")
	r := newRaw(t, c, victim)
	r.write(r.open(mesh.ProtocolACL), frame(nil))
	r.awaitCutOff()
	ahead.Store(int64(mesh.CutOff))
	newRaw(t, c, victim).greeted(c)
}

// picky is a codec that refuses one conversation.
type picky struct{ mesh.Codec }

type refusal struct{ to protocol.AgentID }

func (refusal) Error() string { return "not this one" }

func (r refusal) Answer(self protocol.AgentID) (protocol.Message, bool) {
	return protocol.Message{
		Performative: protocol.NotUnderstood, Sender: self, Receivers: []protocol.AgentID{r.to},
		Protocol: protocol.ProtocolRequest, Conversation: "c-13", Body: message.Refused(protocol.CodeMalformed, "not this one"),
	}, true
}

func (p picky) Open(b []byte, sender protocol.AgentID, at time.Time) (protocol.Message, error) {
	m, err := p.Codec.Open(b, sender, at)
	if err == nil && m.Conversation == "c-13" {
		return protocol.Message{}, errors.Join(refusal{sender})
	}
	return m, err
}

func TestUnreadableMessagesAreAnswered(t *testing.T) {
	m := newMarket(t)
	a := m.start("alice", func(c *mesh.Config) { c.Codec = picky{c.Codec} })
	b := m.joined("bob", a)
	a.awaitKnown(b.Self())
	b.awaitKnown(a.Self())
	b.Send(query(13, a.Self()))
	got := b.await("not-understood", func(m protocol.Message) bool { return m.Performative == protocol.NotUnderstood })
	if got.Sender != a.Self() || got.Conversation != "c-13" {
		t.Errorf("got %+v", got)
	}
}

package mesh_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// presenceOf is a gossiped presence of an agent, issued at a time.
func presenceOf(t *testing.T, key *identity.Credential, counter uint64, issued time.Time) []byte {
	t.Helper()
	m := presence(protocol.KindResource, counter)
	p := m.Body.(message.Presence)
	p.Issued = issued
	m.Body = p
	b, err := codec.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(frame(cardOf(key)), frame(b)...)
}

func isPresenceOf(id protocol.AgentID, counter uint64) func(protocol.Message) bool {
	return func(m protocol.Message) bool {
		p, ok := m.Body.(message.Presence)
		return ok && m.Sender == id && p.Counter >= counter
	}
}

// A recorded presence is signed by its seller, who has left long ago, and reaches an agent
// that has never heard of the seller.
func TestAdversariesReviveNobodyByRecordedPresences(t *testing.T) {
	m := newMarket(t)
	left, mallory := m.credential("left"), m.credential("mallory")
	later := m.start("later", nil)
	r := newRaw(t, mallory, later)
	r.greeted(mallory)
	s := r.open(pubsub.GossipSubID_v11)
	now := time.Now()
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", left, presenceOf(t, left, 7, now.Add(-time.Hour)), 7)))
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", mallory, presenceOf(t, mallory, 8, now), 8)))
	got := later.await("a presence", func(m protocol.Message) bool { _, ok := m.Body.(message.Presence); return ok })
	if got.Sender != mallory.ID {
		t.Errorf("heard of %s, who left an hour ago", got.Sender)
	}
	old := time.Now().Add(-protocol.PresenceTTL)
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", left, presenceOf(t, left, 9, old), 9)))
	got = later.await("an old presence", isPresenceOf(left.ID, 9))
	if ttl := got.Body.(message.Presence).TTL; ttl >= protocol.PresenceTTL {
		t.Errorf("an old presence is good for another %s", ttl)
	}
}

// A market with a second authority that is not trusted here, which has 2,000 sellers, has a
// neighbour who trusts both. It forwards what it may, and is never cut off for it.
func TestAdversariesOfAnUntrustedAuthorityGetNoNeighbourCutOff(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	neighbour := m.credential("neighbour")
	victim := m.start("victim", hearsCalls)
	r := newRaw(t, neighbour, victim)
	r.greeted(neighbour)
	s := r.open(pubsub.GossipSubID_v11)
	for i := range uint64(2000) {
		foreign := other.credential(fmt.Sprint("seller", i))
		r.write(s, frame(signedGossipOn(t, "ramp/presence/1", foreign, presenceOf(t, foreign, i+1, time.Now()), i+1)))
		if i%100 == 99 { // what waits too long to be verified is dropped unseen
			eventually(t, "they are refused", func() bool { return victim.Counters().Refused > i })
		}
	}
	r.write(s, frame(signedGossip(t, neighbour, append(frame(cardOf(neighbour)), frame(encodedCall(t, "honest"))...), 1)))
	victim.await("the neighbour's own call", func(m protocol.Message) bool { return m.Conversation == "honest" })
	if n := victim.Counters().CutOff; n != 0 {
		t.Errorf("%d peers cut off", n)
	}
}

// An agent whose clock is ten minutes ahead is not heard, and leaves one line in the log,
// however often it announces itself.
func TestAdversariesOfTheClockLeaveOneLine(t *testing.T) {
	m := newMarket(t)
	fast := m.credential("fast")
	log := &lockedBuffer{}
	victim := m.start("victim", func(c *mesh.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	r := newRaw(t, fast, victim)
	r.greeted(fast)
	s := r.open(pubsub.GossipSubID_v11)
	for i := range uint64(5) {
		r.write(s, frame(signedGossipOn(t, "ramp/presence/1", fast, presenceOf(t, fast, i+1, time.Now().Add(10*time.Minute)), i+1)))
	}
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", fast, presenceOf(t, fast, 9, time.Now()), 9)))
	got := victim.await("a presence", isPresenceOf(fast.ID, 1))
	eventually(t, "a line", func() bool { return strings.Contains(log.String(), "is a clock wrong?") })
	if n := strings.Count(log.String(), "is a clock wrong?"); n != 1 || got.Body.(message.Presence).Counter != 9 {
		t.Errorf("%d lines, and presence %d was heard first:\n%s", n, got.Body.(message.Presence).Counter, log)
	}
}

// lockedBuffer is a log that a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What an author signs and nobody may say is not forwarded, and costs the author, not the
// honest peer of the version before that forwards it unseen.
func TestGossipFloodsOfInvalidBodiesCostTheirAuthor(t *testing.T) {
	m := newMarket(t)
	author, forwarder := m.credential("author"), m.credential("forwarder")
	victim := m.start("victim", hearsCalls)
	r := newRaw(t, forwarder, victim)
	r.greeted(forwarder)
	a := newRaw(t, author, victim)
	a.greeted(author)
	s := r.open(pubsub.GossipSubID_v11)
	for i := range uint64(100) {
		bad := []byte(fmt.Sprintf("no message %d", i))
		r.write(s, frame(signedGossip(t, author, append(frame(cardOf(author)), frame(bad)...), i+1)))
	}
	a.awaitCutOff()
	r.write(s, frame(signedGossip(t, forwarder, append(frame(cardOf(forwarder)), frame(encodedCall(t, "honest"))...), 1)))
	victim.await("the forwarder's own call", func(m protocol.Message) bool { return m.Conversation == "honest" })
}

// Long messages are dropped before they are forwarded, and an author's bytes are bounded.
func TestGossipFloodsAreBounded(t *testing.T) {
	m := newMarket(t)
	mallory := m.credential("mallory")
	victim := m.start("victim", func(c *mesh.Config) {
		hearsCalls(c)
		c.Limits = mesh.DefaultLimits()
		c.Limits.Load = mesh.Rate{PerSecond: 0.001, Burst: 4 << 10}
	})
	r := newRaw(t, mallory, victim)
	r.greeted(mallory)
	s := r.open(pubsub.GossipSubID_v11)
	long := presenceOf(t, mallory, 1, time.Now())
	for i := range uint64(100) {
		call := encodedCall(t, fmt.Sprint("much", i))
		r.write(s, frame(signedGossip(t, mallory, append(frame(cardOf(mallory)), frame(call)...), i+1)))
	}
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", mallory, long, 200)))
	victim.await("a presence, which has an allowance of its own", isPresenceOf(mallory.ID, 1))
	eventually(t, "the rest is dropped", func() bool { return victim.Counters().Dropped > 50 })
	if got := victim.Counters().MessagesIn; got > 50 {
		t.Errorf("%d messages of about 130 bytes heard, want 4 KiB at most", got)
	}
}

// A presence of more than 2 KiB is not heard, even from its author.
func TestGossipFloodsOfLongPresencesAreNotForwarded(t *testing.T) {
	m := newMarket(t)
	mallory := m.credential("mallory")
	victim := m.start("victim", nil)
	r := newRaw(t, mallory, victim)
	r.greeted(mallory)
	s := r.open(pubsub.GossipSubID_v11)
	msg := presence(protocol.KindResource, 1)
	p := msg.Body.(message.Presence)
	for i := range 40 {
		p.Terms = append(p.Terms, protocol.Terms{Bank: mallory.ID, Currency: "CUR" + string(rune('A'+i%26))})
	}
	msg.Body = p
	b, err := codec.Encode(msg)
	if err != nil {
		t.Fatal(err)
	}
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", mallory, append(frame(cardOf(mallory)), frame(b)...), 1)))
	r.write(s, frame(signedGossipOn(t, "ramp/presence/1", mallory, presenceOf(t, mallory, 2, time.Now()), 2)))
	got := victim.await("a presence", isPresenceOf(mallory.ID, 1))
	if got.Body.(message.Presence).Counter != 2 || len(b) <= mesh.MaxPresence {
		t.Errorf("a presence of %d bytes was heard", len(b))
	}
}

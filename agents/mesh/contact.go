package mesh

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/protocol"
	"ramp/protocol/message"
)

// contact is an agent that has shown a valid credential: where it is, and what
// is left of its allowances.
type contact struct {
	agent protocol.AgentID
	peer  peer.ID

	mu      sync.Mutex
	chain   [][]byte // as last shown, to be verified again
	addrs   []ma.Multiaddr
	kind    protocol.Kind // zero until a presence tells
	since   time.Time     // when the first presence told
	counter uint64        // of the newest presence
	until   time.Time     // when that presence ends
	seen    time.Time
	met     bool // its presence, or that it has none, was told on a stream
	told    bool // this agent's presence was told to it likewise

	messages, bytes, streams, faults, foreign bucket
	gossip                                    map[string]*author
	reading                                   map[libp2pprotocol.ID]*reading
}

// author is what is remembered of one's gossip on a topic.
type author struct {
	allowance bucket
	seen      window
}

// reading is an inbound stream that is being read.
type reading struct {
	stream network.Stream
	done   chan struct{}
}

func newContact(agent protocol.AgentID, id peer.ID) *contact {
	return &contact{
		agent: agent, peer: id,
		gossip: map[string]*author{}, reading: map[libp2pprotocol.ID]*reading{},
	}
}

// show records a card that was verified now.
func (c *contact) show(shown card, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chain, c.seen = shown.chain, now
	if len(shown.addrs) > 0 {
		c.addrs = shown.addrs
	}
}

// hear records a presence, unless it is older than the newest. An agent keeps its
// counter, so its presences are newer after a restart too.
func (c *contact) hear(p message.Presence, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Counter <= c.counter {
		return
	}
	if c.since.IsZero() {
		c.since = now
	}
	c.kind, c.counter, c.seen = p.Agent, p.Counter, now
	c.until = now.Add(min(p.TTL, protocol.MaxTTL))
	if addrs := parseClaimed(p.Addresses); len(addrs) > 0 {
		c.addrs = addrs
	}
}

func parseClaimed(all []string) []ma.Multiaddr {
	var out [][]byte
	for _, s := range all[:min(len(all), MaxAddresses)] {
		if a, err := ma.NewMultiaddr(s); err == nil {
			out = append(out, a.Bytes())
		}
	}
	return dialable(out)
}

// admit takes a message of n bytes off the allowances.
func (c *contact) admit(n int, now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = now
	return c.messages.take(now, 1, l.Messages) && c.bytes.take(now, float64(n), l.Bytes)
}

// meets notes that presences were exchanged; told, that this agent had one.
func (c *contact) meets(told bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met, c.told = true, c.told || told
}

// isFresh reports whether this is a seller of whom a presence was first heard
// within HearerGrace.
func (c *contact) isFresh(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kind == protocol.KindResource && now.Before(c.since.Add(HearerGrace))
}

func (c *contact) wasMet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

func (c *contact) wasTold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

func (c *contact) admitForeign(now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.foreign.take(now, 1, l.Foreign)
}

func (c *contact) admitStream(now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams.take(now, 1, l.Streams)
}

// blame notes a fault and reports whether it was one too many.
func (c *contact) blame(now time.Time, l Limits) (tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.faults.take(now, 1, l.Faults)
}

// admitGossip reports whether a message with a sequence number is new, and
// within the allowance.
func (c *contact) admitGossip(topic string, sequence uint64, now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.gossip[topic]
	if a == nil {
		a = &author{}
		c.gossip[topic] = a
	}
	return a.allowance.take(now, 1, l.Gossip) && a.seen.admit(sequence)
}

// end lets the reader come to the end of a stream that its writer has closed,
// for a while.
func (r *reading) end() {
	grace := time.NewTimer(replaceGrace)
	defer grace.Stop()
	select {
	case <-r.done:
	case <-grace.C:
		_ = r.stream.Reset() // its reader may be gone already
		<-r.done
	}
}

// replace makes s the one stream of its kind that is read from this contact. It
// returns when the reader of an older one is done, so that order is kept; stop
// must be called at the end.
func (c *contact) replace(s network.Stream) (stop func()) {
	mine := &reading{stream: s, done: make(chan struct{})}
	c.mu.Lock()
	older := c.reading[s.Protocol()]
	c.reading[s.Protocol()] = mine
	c.mu.Unlock()
	if older != nil {
		older.end()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reading[s.Protocol()] == mine {
			delete(c.reading, s.Protocol())
		}
		close(mine.done)
	}
}

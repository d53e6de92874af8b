package mesh

import (
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// contact owns everything remembered of an agent that has shown a valid credential:
// its addresses, its announcements and its remaining allowances.
type contact struct {
	agent  protocol.AgentID
	issuer issuer // when it was met first
	peer   peer.ID

	visitor atomic.Bool // it has said that it is one

	mu    sync.Mutex
	facts facts

	messages, bytes, streams, faults, stale bucket
	sent                                    bucket              // messages that it takes
	circuits                                map[peer.ID]*bucket // relayed here to others
	gossip                                  map[string]*author
	reading                                 map[libp2pprotocol.ID]*reading
}

// facts are what a contact has shown and announced.
type facts struct {
	chain   [][]byte // as last shown, to be verified again
	addrs   []ma.Multiaddr
	kind    protocol.Kind // zero before the first presence
	since   time.Time     // when the first presence arrived
	counter uint64        // of the newest presence
	until   time.Time     // when that presence expires
	seen    time.Time
	met     bool    // the two have exchanged presences, possibly empty, on a stream
	lists   version // the revocation lists that it has shown
	greeted bool    // it has received this agent's presence in that way
}

// author is the record of one contact's gossip on a topic.
type author struct {
	allowance, load bucket
	seen            window
}

// reading is an inbound stream that is being read.
type reading struct {
	stream network.Stream
	done   chan struct{}
}

func newContact(agent protocol.AgentID, by issuer, id peer.ID) *contact {
	return &contact{
		agent: agent, issuer: by, peer: id,
		gossip: map[string]*author{}, reading: map[libp2pprotocol.ID]*reading{},
	}
}

// inherit takes over what a peer has spent under another name.
func (c *contact) inherit(before *contact) {
	if before == nil {
		return
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	c.messages, c.bytes, c.streams, c.faults, c.stale, c.sent = before.messages, before.bytes, before.streams, before.faults, before.stale, before.sent
	c.gossip, before.gossip = before.gossip, c.gossip // nobody asks the other one any more
	c.circuits, before.circuits = before.circuits, nil
}

// show records a card that was verified now.
func (c *contact) show(shown card, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts.chain, c.facts.seen = shown.chain, now
	if len(shown.addrs) > 0 {
		c.facts.addrs = shown.addrs
	}
}

// hear records a presence, unless it is older than the newest. An agent keeps its
// counter, so its presences are newer after a restart too.
func (c *contact) hear(p message.Presence, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Counter <= c.facts.counter {
		return
	}
	if c.facts.since.IsZero() {
		c.facts.since = now
	}
	c.facts.kind, c.facts.counter, c.facts.seen = p.Agent, p.Counter, now
	c.facts.until = now.Add(min(p.TTL, protocol.MaxTTL))
	if addrs := parseClaimed(p.Addresses); len(addrs) > 0 {
		c.facts.addrs = addrs
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

// admit charges a message of n bytes to the allowances.
func (c *contact) admit(n int, now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts.seen = now
	return c.messages.take(now, 1, l.Messages) && c.bytes.take(now, float64(n), l.Bytes)
}

// meets records an exchange of presences; greeted: this agent's was not empty.
func (c *contact) meets(greeted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts.met, c.facts.greeted = true, c.facts.greeted || greeted
}

// current returns a copy of the facts.
func (c *contact) current() facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts
}

// authority names the issuer of the contact's certificate, as records of an index do.
func (c *contact) authority() string {
	chain := c.current().chain
	if len(chain) == 0 {
		return ""
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return "" // it was parsed when the chain was verified
	}
	return codec.IssuerOf([]*x509.Certificate{leaf})
}

// charge takes one from an allowance and reports whether it was left.
func (c *contact) charge(b *bucket, now time.Time, r Rate) bool { return c.spend(b, 1, now, r) }

// spend takes n from an allowance and reports whether that was left.
func (c *contact) spend(b *bucket, n float64, now time.Time, r Rate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.take(now, n, r)
}

// connects charges a relayed connection to a peer.
func (c *contact) connects(to peer.ID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.circuits[to] == nil {
		if len(c.circuits) >= MaxRelayed || c.circuits == nil {
			c.circuits = map[peer.ID]*bucket{}
		}
		c.circuits[to] = &bucket{}
	}
	return c.circuits[to].take(now, 1, Rate{PerSecond: 0.5, Burst: relayCircuits / 2})
}

// admitGossip reports whether a message of n bytes with a sequence number is new, and
// within the allowances.
func (c *contact) admitGossip(topic string, sequence uint64, n int, now time.Time, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.gossip[topic]
	if a == nil {
		a = &author{}
		c.gossip[topic] = a
	}
	return a.allowance.take(now, 1, l.Gossip) && a.load.take(now, float64(n), l.Load) && a.seen.admit(sequence)
}

// end gives the reader replaceGrace to finish a stream that its writer has closed.
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

// replace makes s the only stream of its protocol that is read from this contact. To
// preserve order, it returns when the reader of an older one has finished. The caller
// must call stop at the end.
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

package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/message"
)

// errStale marks a presence that was issued too long ago, or too far ahead.
var errStale = errors.New("stale")

// mostOf bounds the messages of a topic, in bytes.
func mostOf(topic string) int {
	if topic == topicPresence {
		return maxPresence
	}
	return maxCall
}

// validate decides whether to accept and forward a gossiped message. The library has
// verified the author's signature; this verifies everything else that a receiver would,
// so that nothing is forwarded that others would drop.
func (g *gossip) validate(topic string, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	if from == g.ep.host.ID() {
		return pubsub.ValidationAccept
	}
	c, b, err := g.author(topic, msg)
	switch {
	case isFault(err):
		g.chargeForwarder(from, err)
		return pubsub.ValidationReject
	case err != nil: // an author that is not trusted here may be trusted where it comes from
		g.ep.counters.refused.Add(1)
		return pubsub.ValidationIgnore
	}
	now := g.ep.cfg.Now()
	if seq := msg.GetSeqno(); len(seq) != 8 || !c.admitGossip(topic, binary.BigEndian.Uint64(seq), len(b), now, g.ep.cfg.Limits) {
		g.ep.counters.dropped.Add(1)
		return pubsub.ValidationIgnore
	}
	m, err := g.body(topic, c, b, now)
	switch {
	case errors.Is(err, errStale):
		g.ep.counters.dropped.Add(1)
		if from == c.peer && c.charge(&c.stale, now, Rate{PerSecond: 1 / staleLog.Seconds(), Burst: 1}) {
			g.ep.cfg.Log.Warn("presence dropped", "of", c.agent, "err", err)
		}
		return pubsub.ValidationIgnore
	case err != nil:
		g.chargeAuthor(c, err)
		return pubsub.ValidationIgnore
	}
	msg.ValidatorData = heard{c, m}
	return pubsub.ValidationAccept
}

// author verifies whose message it is, before anything else in it is read.
func (g *gossip) author(topic string, msg *pubsub.Message) (*contact, []byte, error) {
	f := framing.Fields{Rest: msg.GetData()}
	shown, b := f.Field(), f.Field()
	if err := f.Finish(); err != nil {
		return nil, nil, err
	}
	if !g.ep.gate.open(msg.GetFrom()) {
		return nil, nil, fmt.Errorf("author %s: %w", msg.GetFrom(), errCutOff)
	}
	c, err := g.ep.verify(msg.GetFrom(), slices.Clone(shown), true)
	return c, b, err
}

// body opens a message and checks that it belongs to the topic. A presence is good only
// for as long as its time of issue says, so that a recorded one revives nobody. Its
// author, that it left, is heard whenever it comes.
func (g *gossip) body(topic string, c *contact, b []byte, now time.Time) (protocol.Message, error) {
	if most := mostOf(topic); len(b) > most {
		return protocol.Message{}, fmt.Errorf("message of %d bytes, at most %d on %s: %w", len(b), most, topic, errBound)
	}
	m, err := g.delivery.open(b, c.agent)
	if err != nil {
		return m, err
	}
	if topic == topicCalls {
		if _, ok := m.Body.(message.CallForProposals); !ok || m.Performative != protocol.CFP {
			err = fmt.Errorf("%s on the topic of calls: %w", kindOf(m), errMalformed)
		}
		return m, err
	}
	p, ok := m.Body.(message.Presence)
	if !ok {
		return m, fmt.Errorf("%s on the topic of presences: %w", kindOf(m), errMalformed)
	}
	m.Body, err = fresh(p, now)
	return m, err
}

// fresh returns a gossiped presence with the time that is left to it. One without a time
// of issue is of a version before, and taken as it is.
func fresh(p message.Presence, now time.Time) (message.Presence, error) {
	age := now.Sub(p.Issued)
	switch {
	case p.Issued.IsZero() || p.TTL == 0:
		return p, nil
	case age < -staleAfter || age > p.TTL+staleAfter:
		return p, fmt.Errorf("issued at %s, for %s; is a clock wrong?: %w", p.Issued.Format(time.RFC3339), p.TTL, errStale)
	}
	p.TTL = min(p.TTL, p.TTL+staleAfter-age)
	return p, nil
}

// chargeForwarder counts gossip that no peer forwards if it checks what it gets. A few such
// messages are forgiven.
func (g *gossip) chargeForwarder(from peer.ID, why error) {
	g.ep.counters.refused.Add(1)
	c, most := g.ep.contacts.ofPeer(from), g.ep.cfg.Limits.Faults
	if c == nil || !c.spend(&c.faults, forwardedCosts, g.ep.cfg.Now(), most) {
		g.ep.drop(from, fmt.Errorf("it forwards invalid gossip: %w", why))
	}
}

// chargeAuthor counts invalid gossip against the author, who signed it, and cuts the
// author off if it was too much. A forwarder of the version before did not look at it.
func (g *gossip) chargeAuthor(c *contact, why error) {
	g.ep.counters.refused.Add(1)
	if !c.charge(&c.faults, g.ep.cfg.Now(), g.ep.cfg.Limits.Faults) {
		g.ep.drop(c.peer, fmt.Errorf("it gossips what is invalid: %w", why))
	}
}

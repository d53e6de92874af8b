package index

import (
	"maps"
	"reflect"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Rules of gossip. All presences of a market together come ten times a second at most.
const (
	perVoice = 100 * time.Millisecond // between two presences of an agent, for each agent that gossips
	slowest  = 15 * time.Minute       // between them, in any market
	MaxHeard = 2048                   // agents that gossip, as far as they are counted
)

// pace spaces an agent's presences by how many agents send some.
type pace struct {
	heard map[protocol.AgentID]voice
	last  time.Time // when a presence left
	said  message.Presence
}

// voice is an agent that gossips.
type voice struct {
	until  time.Time
	seller bool
}

func newPace() pace { return pace{heard: map[protocol.AgentID]voice{}} }

// hear notes a presence of another agent.
func (p *pace) hear(now time.Time, from protocol.AgentID, body message.Presence) {
	if body.TTL == 0 {
		delete(p.heard, from)
		return
	}
	if _, known := p.heard[from]; known || len(p.heard) < MaxHeard {
		p.heard[from] = voice{now.Add(min(body.TTL, protocol.MaxTTL)), body.Agent == protocol.KindResource}
	}
}

// count returns how many agents gossip, and how many of them sell.
func (p *pace) count(now time.Time) (all, sellers int) {
	maps.DeleteFunc(p.heard, func(_ protocol.AgentID, v voice) bool { return !now.Before(v.until) })
	for _, v := range p.heard { // any order: counted
		if v.seller {
			sellers++
		}
	}
	return len(p.heard), sellers
}

// Apart is the time between two presences of an agent where so many gossip.
func Apart(voices int) time.Duration { return min(time.Duration(voices)*perVoice, slowest) }

// admit reports whether a presence may leave now, in a market where so many gossip: when it
// is due, or says something new. If so, it is made valid until a few more are due.
func (p *pace) admit(now time.Time, body *message.Presence, voices int) bool {
	apart := Apart(voices)
	if body.TTL == 0 { // the last one
		return true
	}
	if now.Before(p.last.Add(apart-perVoice)) && sameNews(p.said, *body) { // alarms may ring a little early
		return false
	}
	p.last, p.said = now, *body
	body.TTL = max(body.TTL, min(7*apart/2, protocol.MaxTTL))
	return true
}

// sameNews reports whether two presences of an agent say the same, but for their numbers.
func sameNews(a, b message.Presence) bool {
	large := a.Index > From
	if large != (b.Index > From) {
		return false
	}
	a.Counter, a.TTL, a.Index = b.Counter, b.TTL, b.Index
	return reflect.DeepEqual(a, b)
}

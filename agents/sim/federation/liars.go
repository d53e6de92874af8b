package federation

import (
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The kinds of adversaries. All but the outsider are members of the federation.
const (
	NeverStarts  = "never-starts"  // bids the most, takes each job once, and never begins it
	Replays      = "replays"       // takes jobs, returns them, and repeats what it has said before
	ClaimsLevels = "claims-levels" // auctions jobs of users without the right to their level
	Outbids      = "outbids"       // auctions jobs, looks at the bids, claims to bid more, and leaves those whom it has awarded a job without a decision
	NeverBrings  = "never-brings"  // auctions and sells jobs, and never brings their input
	Outsider     = "outsider"      // bids, awards and reports without being a member
)

// Kinds lists the kinds of adversaries.
func Kinds() []string {
	return []string{NeverStarts, Replays, ClaimsLevels, Outbids, NeverBrings, Outsider}
}

// liar is a dishonest agent.
type liar struct {
	world *World
	self  protocol.AgentID
	kind  string
	c     sim.Chance
	took  map[string]bool
	said  []protocol.Message // the last ones
	count int
}

// liarPeriod is how often a liar acts by itself.
const liarPeriod = 7 * time.Minute

// lies names the agents of a world's liars, and those of them that are members.
func (c *Cast) lies(kinds []string) (all, members []protocol.AgentID) {
	for _, kind := range kinds {
		id := c.credential("liar-" + kind).ID
		if all = append(all, id); kind != Outsider {
			members = append(members, id)
		}
	}
	return all, members
}

func (w *World) addLiars(cast *Cast) {
	all, _ := cast.lies(w.cfg.Liars)
	for i, id := range all {
		l := &liar{world: w, self: id, kind: w.cfg.Liars[i], c: sim.NewChance(w.cfg.Seed, 20+uint64(i)), took: map[string]bool{}}
		w.Add(sim.Spec{Name: id.Name(), Credential: cast.credential(id.Name()), Steady: true, Load: func(_ protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return l, protocol.Output{WakeAt: now.Add(liarPeriod)}, nil
		}})
	}
}

func (l *liar) say(to protocol.AgentID, job string, p protocol.Performative, body protocol.Body) protocol.Output {
	m := protocol.Message{Performative: p, Sender: l.self, Receivers: []protocol.AgentID{to}, Protocol: protocol.ProtocolEnglish, Conversation: job, Body: body}
	l.said = append(l.said, m)
	l.said = l.said[max(0, len(l.said)-100):]
	return protocol.Output{Send: []protocol.Message{m}}
}

func (l *liar) Receive(now time.Time, m protocol.Message) protocol.Output {
	if l.kind == ClaimsLevels || l.kind == NeverBrings {
		return l.auction(m)
	}
	if l.kind == Outbids {
		return l.outbid(m)
	}
	if l.kind == Outsider {
		if m.Performative == protocol.AcceptProposal {
			l.world.fault("job %s is awarded to an agent that the rules do not name", m.Conversation)
		}
		return protocol.Output{}
	}
	var out protocol.Output
	switch b := m.Body.(type) {
	case message.AuctionOpen:
		if !l.took[m.Conversation] {
			out = l.say(m.Sender, m.Conversation, protocol.Propose, message.JobBid{Number: b.Number, Seq: now.UnixMicro(), Free: b.Terms.Most})
		}
	case message.JobAward:
		switch {
		case m.Performative == protocol.AcceptProposal:
			l.took[m.Conversation] = true
			out = l.say(m.Sender, m.Conversation, protocol.Agree, b)
		case m.Performative == protocol.Confirm && l.kind == Replays:
			out = l.say(m.Sender, m.Conversation, protocol.Inform, message.JobProgress{State: message.JobReturned, Award: b.Award})
		}
	}
	if l.kind == Replays && len(l.said) > 0 && l.c.N(3) == 0 {
		out.Send = append(out.Send, l.said[l.c.N(len(l.said))])
	}
	return out
}

// auction sells a job that nobody may offer, or that has no input.
func (l *liar) auction(m protocol.Message) protocol.Output {
	switch b := m.Body.(type) {
	case message.JobBid:
		return l.say(m.Sender, m.Conversation, protocol.AcceptProposal, message.JobAward{Award: 1, Number: b.Number, Seq: b.Seq})
	case message.JobAward:
		return l.say(m.Sender, m.Conversation, protocol.Confirm, b)
	}
	return protocol.Output{}
}

// outbid awards a job to each site that bids for it, and never confirms.
func (l *liar) outbid(m protocol.Message) (out protocol.Output) {
	if b, ok := m.Body.(message.JobBid); ok && m.Performative == protocol.Propose {
		for _, s := range l.world.sites {
			out = out.Join(l.say(s.id, m.Conversation, protocol.Inform, message.Standing{Number: b.Number, Leader: l.self, Value: 1 << 40}))
		}
		out = out.Join(l.say(m.Sender, m.Conversation, protocol.AcceptProposal, message.JobAward{Award: 1, Number: b.Number, Seq: b.Seq}))
	}
	return out
}

func (l *liar) Wake(now time.Time) protocol.Output {
	out := protocol.Output{WakeAt: now.Add(liarPeriod)}
	l.count++
	w := l.world
	acts := []protocol.Performative{protocol.Agree, protocol.Confirm, protocol.Cancel, protocol.Refuse}
	for _, s := range w.sites {
		switch l.kind {
		case ClaimsLevels, Outbids, NeverBrings:
			owner := w.roles[len(w.roles)-1].self // who may not use the level
			terms := message.JobTerms{Level: message.MaxLevels, Least: 1, Most: 2, Wall: time.Hour, Where: s.id}
			if l.kind != ClaimsLevels {
				owner = w.roles[0].self
			}
			if l.kind == NeverBrings {
				terms.Where = l.self
			}
			out = out.Join(l.say(s.id, fmt.Sprintf("forged%d", l.count), protocol.Inform, message.AuctionOpen{
				Rules: w.rules.Digest, Owner: owner, Terms: terms, Number: 1, Ends: now.Add(time.Minute),
			}))
		case Outsider:
			job, award := w.order[l.c.N(len(w.order))], 1+l.c.N(2)
			a := message.JobAward{Award: award, Number: award, Seq: 1 << 60}
			for _, id := range w.order {
				out = out.Join(l.say(s.id, id, protocol.Propose, message.JobBid{Number: award, Seq: int64(l.count), Free: 2}))
			}
			out = out.Join(l.say(s.id, job, protocol.Inform, message.JobProgress{State: message.JobReturned, Award: award}))
			out = out.Join(l.say(s.id, job, acts[l.c.N(len(acts))], a))
		}
	}
	return out
}

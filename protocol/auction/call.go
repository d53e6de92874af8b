package auction

import (
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// call sends the cfp of the running round and sets its deadline.
func (b *Buyer) call(now time.Time, receivers []protocol.AgentID) protocol.Output {
	best := b.state == BestOffer
	b.standing.begin(b.round, best)
	b.sellers.best = best
	b.called = now
	b.gossiped = receivers[0] == protocol.Everyone
	b.limit = now.Add(b.cfg.RoundLimit)
	b.deadline = b.limit
	if !b.cfg.NoEarlyClose && !b.gossiped && !slices.ContainsFunc(receivers, b.sellers.lastChance) {
		b.deadline = protocol.Earlier(b.limit, now.Add(b.sellers.timing.Patience()))
	}
	b.sellers.await(receivers, b.gossiped)
	groups := []needs{{receivers, b.round == 1 || b.scout != nil}}
	if !b.gossiped {
		groups = b.sellers.byNeed(receivers)
	}
	out := protocol.Output{WakeAt: b.deadline}
	for _, group := range groups {
		tied, others := b.tied(group.receivers)
		for _, id := range tied {
			out.Send = append(out.Send, b.cfp([]protocol.AgentID{id}, best, group.document))
		}
		for to := range slices.Chunk(others, protocol.MaxReceivers) {
			out.Send = append(out.Send, b.cfp(to, best, group.document))
		}
	}
	return out
}

// tied separates the receivers that are tied with a leader. Each of them gets a cfp of
// its own, so that a seller learns about its own offers only; the others share one.
func (b *Buyer) tied(receivers []protocol.AgentID) (tied, others []protocol.AgentID) {
	if b.gossiped || b.state == BestOffer {
		return nil, receivers
	}
	list := b.standing.ceilingList()
	for _, id := range receivers {
		if b.standing.tell(list, id) {
			tied = append(tied, id)
		} else {
			others = append(others, id)
		}
	}
	return tied, others
}

func (b *Buyer) cfp(receivers []protocol.AgentID, best, document bool) protocol.Message {
	body := message.CallForProposals{
		Round: b.round, Ceilings: b.standing.ceilingList(), Bundles: b.standing.bundleList(),
		Objective: b.cfg.Objective, Best: best, Start: b.standing.together.from(),
	}
	if len(receivers) == 1 && !b.gossiped && !best {
		b.standing.tell(body.Ceilings, receivers[0])
	}
	if b.gossiped && b.scout != nil {
		body.Budget, body.Among = b.scout.sweep()
	}
	if document {
		body.Document, body.Terms, body.Modes, body.Launch = b.cfg.Document, b.cfg.Terms, b.cfg.Modes, b.cfg.Launch
	}
	return protocol.Message{
		Performative: protocol.CFP, Sender: b.cfg.Self, Receivers: receivers,
		Protocol: protocol.ProtocolAuction, Conversation: b.cfg.Conversation,
		ReplyWith: "r" + strconv.Itoa(b.round), ReplyBy: b.limit, Body: body,
	}
}

// record adds the ending round to the report for the owner.
func (b *Buyer) record(now time.Time) {
	r := message.Round{Round: b.round, MS: Milliseconds(now.Sub(b.called))}
	r.Best, r.Starts = b.standing.cheapest()
	for _, s := range b.sellers.byID { // any order: each entry stands alone
		switch {
		case s.offers > 0:
			r.Offers++
		case s.replied:
			r.Refusals++
		}
	}
	b.rounds = append(b.rounds, r)
}

// Milliseconds converts d for people and reports.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

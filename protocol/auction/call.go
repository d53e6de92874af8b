package auction

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// call sends the cfp of the running round and sets its deadline.
func (b *Buyer) call(now time.Time, receivers []protocol.AgentID, best bool) protocol.Output {
	b.noteCeilings()
	b.called = now
	b.gossiped = receivers[0] == protocol.Everyone
	b.limit = now.Add(b.cfg.RoundLimit)
	b.deadline = b.limit
	if !b.cfg.NoEarlyClose && !b.gossiped && !slices.ContainsFunc(receivers, b.hoped) {
		b.deadline = protocol.Earlier(b.limit, now.Add(b.timing.Patience()))
	}
	b.await(receivers)
	out := protocol.Output{WakeAt: b.deadline}
	for _, group := range b.byNeed(receivers) {
		for to := range slices.Chunk(group.receivers, protocol.MaxReceivers) {
			out.Send = append(out.Send, b.cfp(to, best, group.document))
		}
	}
	return out
}

// noteCeilings keeps what the cfp names.
func (b *Buyer) noteCeilings() {
	b.stood = stood{slices.Clone(b.ceilings), slices.Clone(b.single), make(map[string]protocol.Credits, len(b.bundles))}
	for units, c := range b.bundles { // in any order: each by itself
		b.stood.bundles[units] = c.Cost
	}
}

// hoped reports whether a seller is waited for in the best-offer round for as long as
// it was told that it has: nothing meets the request, and what it would offer is not
// known. One whose every answer takes longer than patience could never sell otherwise.
func (b *Buyer) hoped(id protocol.AgentID) bool {
	return b.state == BestOffer && !b.sellers[id].heard
}

// await makes those who were called and are punctual due. If nobody was of late,
// all are. In the best-offer round so are those who were never heard.
func (b *Buyer) await(called []protocol.AgentID) {
	b.awaited = 0
	for _, s := range b.sellers { // in any order: each by itself
		s.due = false
	}
	if b.gossiped {
		return
	}
	due := func(id protocol.AgentID) bool { return b.timing.Due(id) || b.hoped(id) }
	for _, punctual := range []func(protocol.AgentID) bool{due, anybody} {
		for _, id := range called {
			if punctual(id) {
				b.sellers[id].due = true
				b.awaited++
			}
		}
		if b.awaited > 0 {
			return
		}
	}
}

func anybody(protocol.AgentID) bool { return true }

// needs are receivers of the same cfp: with the document or without.
type needs struct {
	receivers []protocol.AgentID
	document  bool
}

// byNeed parts those who have shown that they have the document from those who
// may have missed it: a lost cfp, or a restart, costs a seller one round only.
func (b *Buyer) byNeed(receivers []protocol.AgentID) []needs {
	if b.gossiped {
		return []needs{{receivers, b.round == 1 || b.budgeted()}}
	}
	lacking, have := needs{document: true}, needs{}
	for _, id := range receivers {
		if b.sellers[id].informed {
			have.receivers = append(have.receivers, id)
		} else {
			lacking.receivers = append(lacking.receivers, id)
		}
	}
	return []needs{have, lacking}
}

// callees are who gets the cfp: all of a small market; in a large one everybody
// by gossip in the first and in the best-offer round, and else those who bid; or
// whom the scout chooses. Nobody, if no round is needed.
func (b *Buyer) callees(round int, best bool) []protocol.AgentID {
	if b.budgeted() {
		return b.scoutCallees(round, best)
	}
	if !b.gossips() {
		return b.order
	}
	var bidders []protocol.AgentID
	seen := map[protocol.AgentID]bool{}
	for _, bid := range b.standing {
		if !seen[bid.Seller] {
			seen[bid.Seller] = true
			bidders = append(bidders, bid.Seller)
		}
	}
	if round == 1 || best || len(bidders) == 0 || len(bidders) > b.cfg.callAtMost() {
		return []protocol.AgentID{protocol.Everyone}
	}
	return bidders
}

func (b *Buyer) cfp(receivers []protocol.AgentID, best, document bool) protocol.Message {
	body := message.CallForProposals{
		Round: b.round, Ceilings: b.ceilingList(), Bundles: b.bundleList(),
		Objective: b.cfg.Objective, Best: best,
	}
	if b.gossiped && b.budgeted() {
		b.scout.taken = 0
		body.Budget, body.Among = b.sweep()
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

func (b *Buyer) ceilingList() []message.Ceiling {
	list := make([]message.Ceiling, len(b.ceilings))
	for i, c := range b.ceilings {
		list[i] = message.Ceiling{Unit: i, Price: c}
	}
	return list
}

func (b *Buyer) bundleList() []message.BundleCeiling {
	keys := make([]string, 0, len(b.bundles))
	for k := range b.bundles {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	list := make([]message.BundleCeiling, 0, len(keys))
	for _, k := range keys {
		list = append(list, b.bundles[k])
	}
	return list
}

// record keeps the round that ends for the owner to see.
func (b *Buyer) record(now time.Time) {
	r := message.Round{Round: b.round, MS: Milliseconds(now.Sub(b.called))}
	r.Best, r.Starts = b.cheapest()
	offering := map[protocol.AgentID]bool{}
	for _, bid := range b.standing {
		offering[bid.Seller] = true
	}
	r.Offers = len(offering)
	for _, id := range b.order {
		if s := b.sellers[id]; !offering[id] && s.heard {
			r.Refusals++
		}
	}
	b.rounds = append(b.rounds, r)
}

// cheapest are the lowest price of each unit, and when those offers start, if any
// of their sellers tells how sure that is.
func (b *Buyer) cheapest() ([]*protocol.Credits, []message.RoundStart) {
	best, starts := make([]*protocol.Credits, len(b.ceilings)), make([]message.RoundStart, len(b.ceilings))
	for _, bid := range b.standing {
		for _, it := range bid.Offer.Items {
			if p := best[it.Unit]; p == nil || it.Price < *p {
				price := it.Price
				best[it.Unit] = &price
				starts[it.Unit] = message.RoundStart{Start: it.Slot.Start, Queued: bid.Offer.Queued}
			}
		}
	}
	if !slices.ContainsFunc(starts, func(s message.RoundStart) bool { return s.Queued != 0 }) {
		return best, nil
	}
	return best, starts
}

// Milliseconds is d in milliseconds, for people and reports.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

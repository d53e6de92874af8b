package auction

import (
	"sort"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// call sends the cfp of the running round and sets its deadline.
func (b *Buyer) call(now time.Time, best bool) protocol.Output {
	b.called = now
	b.limit = now.Add(b.cfg.RoundLimit)
	b.deadline = b.limit
	if !b.cfg.NoEarlyClose && !b.gossips() {
		b.deadline = protocol.Earlier(b.limit, now.Add(b.timing.Patience()))
	}
	receivers := b.callees()
	b.awaited = 0
	for _, id := range b.order {
		s := b.sellers[id]
		s.due = b.timing.Due(id)
		if s.due {
			b.awaited++
		}
	}
	if b.awaited == 0 { // nobody was punctual of late: wait for all
		b.dueAll()
	}
	out := protocol.Output{WakeAt: b.deadline}
	for len(receivers) > 0 {
		n := min(len(receivers), protocol.MaxReceivers)
		out.Send = append(out.Send, b.cfp(receivers[:n], best))
		receivers = receivers[n:]
	}
	return out
}

func (b *Buyer) dueAll() {
	for _, id := range b.order {
		b.sellers[id].due = true
	}
	b.awaited = len(b.order)
}

// callees are who gets the cfp: all of a small market; in a large one everybody
// by gossip in the first and in the best-offer round, and else those who bid.
func (b *Buyer) callees() []protocol.AgentID {
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
	if b.round == 1 || b.state == BestOffer || len(bidders) == 0 || len(bidders) > protocol.MaxGossipless {
		return []protocol.AgentID{protocol.Everyone}
	}
	return bidders
}

func (b *Buyer) cfp(receivers []protocol.AgentID, best bool) protocol.Message {
	body := message.CallForProposals{
		Round: b.round, Ceilings: b.ceilingList(), Bundles: b.bundleList(),
		Objective: b.cfg.Objective, Best: best,
	}
	if b.round == 1 {
		body.Document, body.Terms, body.Modes = b.cfg.Document, b.cfg.Terms, b.cfg.Modes
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
		list[i] = message.Ceiling{Unit: i, Price: *c}
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
	r := message.Round{Round: b.round, Best: make([]*protocol.Credits, len(b.ceilings)), MS: Milliseconds(now.Sub(b.called))}
	for _, bid := range b.standing {
		for _, it := range bid.Offer.Items {
			if p := r.Best[it.Unit]; p == nil || it.Price < *p {
				price := it.Price
				r.Best[it.Unit] = &price
			}
		}
	}
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

// Milliseconds is d in milliseconds, for people and reports.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

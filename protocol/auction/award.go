package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// Result is the outcome of an auction.
type Result struct {
	Bids  []protocol.Bid // the best set
	Exact bool           // no set is better
	Best  bool           // from the best-offer round: the set violates terms
}

// Approve notes that the owner has approved the Result. From then on, Choose only
// returns sets that are no worse.
func (b *Buyer) Approve() { b.approved = true }

// Choose picks the best set of the offers that stand, after a seller has refused
// its vote or is slow: with all fixed bids, without those that without excludes and
// those that have expired. The set may violate terms if the Result does.
func (b *Buyer) Choose(now time.Time, fixed []protocol.Bid, without func(protocol.Bid) bool) ([]protocol.Bid, bool) {
	s, ok := b.solve(now, fixed, without, b.best)
	a := b.solution
	if !ok || b.approved && (s.Cost > a.Cost || s.Violations > a.Violations || s.Excess > a.Excess) {
		return nil, false
	}
	return s.Bids(), true
}

// solve finds the best set. Relaxed, it finds the closest one: with the fewest
// violated terms, then the least relative excess, at any cost, since the owner must
// approve it. It takes sellers that come last only if no set does without them.
func (b *Buyer) solve(now time.Time, fixed []protocol.Bid, without func(protocol.Bid) bool, relaxed bool) (clearing.Solution, bool) {
	p := clearing.Problem{
		Units: len(b.cfg.Wants), Objective: b.cfg.Objective, Together: b.standing.together.wanted, MaxCost: b.cfg.MaxCost,
		Capacity: map[protocol.AgentID][]protocol.Span{},
	}
	if relaxed {
		p.MaxCost = 0
	}
	if b.approved {
		p.MaxCost = b.solution.Cost
	}
	for _, f := range fixed {
		p.Fixed = append(p.Fixed, b.weigh(clearing.Bid{Bid: f}))
	}
	var last []clearing.Bid
	for _, bid := range b.standing.live(now, fixed, without) {
		switch bid = b.weigh(bid); {
		case !relaxed && bid.Violations > 0, b.standing.together.found && !b.standing.together.fits(bid.Offer):
		case b.cfg.last(bid.Seller):
			last = append(last, bid)
		default:
			p.Bids = append(p.Bids, bid)
		}
	}
	for id, s := range b.sellers.byID {
		if len(s.spans) > 0 {
			p.Capacity[id] = s.spans
		}
	}
	s, err := clearing.Solve(p)
	if len(last) > 0 && (err != nil || s.Status != clearing.Covered) {
		p.Bids = append(p.Bids, last...)
		s, err = clearing.Solve(p)
	}
	return s, err == nil && s.Status == clearing.Covered
}

// weigh adds how much a bid violates the request.
func (b *Buyer) weigh(bid clearing.Bid) clearing.Bid {
	bid.Violations, bid.Excess = wants(b.cfg.Wants).violations(bid.Offer)
	return bid
}

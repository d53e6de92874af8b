package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// Key names an offer among all sellers' offers of a conversation.
type Key struct {
	Seller protocol.AgentID
	Offer  string
}

// KeyOf is the key of a bid's offer.
func KeyOf(b clearing.Bid) Key { return Key{b.Seller, b.Offer.ID} }

// Solve picks the best set of the standing offers that satisfies the request:
// fixed offers are part of it, excluded ones and those no longer valid are not.
// It may be asked again when a vote is refused.
func (b *Buyer) Solve(now time.Time, fixed []clearing.Bid, excluded map[Key]bool) (clearing.Solution, bool) {
	p := b.problem(now, fixed, excluded)
	p.Bids = b.satisfying(p.Bids)
	return solve(p)
}

// Resolve is Solve for a set that may violate terms as the one of Result did.
func (b *Buyer) Resolve(now time.Time, fixed []clearing.Bid, excluded map[Key]bool) (clearing.Solution, bool) {
	if !b.result.Best {
		return b.Solve(now, fixed, excluded)
	}
	return solve(b.relaxed(now, fixed, excluded))
}

func (b *Buyer) solveClosest(now time.Time) (clearing.Solution, bool) {
	return solve(b.relaxed(now, nil, nil))
}

// relaxed is the problem of the closest set: fewest violated terms, then least
// relative excess.
func (b *Buyer) relaxed(now time.Time, fixed []clearing.Bid, excluded map[Key]bool) clearing.Problem {
	p := b.problem(now, fixed, excluded)
	p.MaxCost = 0 // a dear set may be the closest; the owner is asked
	for i := range p.Bids {
		b.weigh(now, &p.Bids[i])
	}
	return p
}

func solve(p clearing.Problem) (clearing.Solution, bool) {
	s, err := clearing.Solve(p)
	return s, err == nil && s.Status == clearing.Covered
}

func (b *Buyer) problem(now time.Time, fixed []clearing.Bid, excluded map[Key]bool) clearing.Problem {
	p := clearing.Problem{
		Units: len(b.cfg.Wants), Fixed: fixed, Objective: b.cfg.Objective, MaxCost: b.cfg.MaxCost,
		Capacity: map[protocol.AgentID][]protocol.Span{},
	}
	isFixed := map[Key]bool{}
	for _, f := range fixed {
		isFixed[KeyOf(f)] = true
	}
	for _, bid := range b.standing {
		k := KeyOf(bid)
		if excluded[k] || isFixed[k] || !bid.Offer.ValidUntil.After(now) || b.begun(now, bid) {
			continue
		}
		p.Bids = append(p.Bids, bid)
	}
	for id, s := range b.sellers {
		if len(s.spans) > 0 {
			p.Capacity[id] = s.spans
		}
	}
	return p
}

func (b *Buyer) begun(now time.Time, bid clearing.Bid) bool {
	for _, it := range bid.Offer.Items {
		if !it.Slot.Start.After(now) {
			return true
		}
	}
	return false
}

// satisfying keeps the bids that violate nothing; after the best-offer round
// others stand too.
func (b *Buyer) satisfying(bids []clearing.Bid) []clearing.Bid {
	kept := bids[:0]
	for _, bid := range bids {
		if v, _ := b.violations(bid.Offer); v == 0 {
			kept = append(kept, bid)
		}
	}
	return kept
}

func (b *Buyer) weigh(_ time.Time, bid *clearing.Bid) {
	bid.Violations, bid.Excess = b.violations(bid.Offer)
}

// violations counts the terms that an offer breaks and by how much, per mille of
// what was asked: price of the ceiling, lateness of the window.
func (b *Buyer) violations(o protocol.Offer) (count, excess int) {
	for _, it := range o.Items {
		w := b.cfg.Wants[it.Unit]
		if it.Price > w.Ceiling {
			count++
			excess += perMille(int64(it.Price-w.Ceiling), int64(w.Ceiling))
		}
		if late := lateness(w, it); late > 0 {
			count++
			excess += perMille(int64(late), int64(max(w.Wall, time.Minute)))
		}
	}
	return count, min(excess, clearing.MaxExcess)
}

// lateness is by how much an item ends or starts after what was asked.
func lateness(w Want, it protocol.Item) time.Duration {
	late := max(0, it.Slot.End.Sub(w.End))
	if !w.LastStart.IsZero() {
		late = max(late, it.Slot.Start.Sub(w.LastStart))
	}
	return late
}

// perMille rounds up, so that any excess counts, and caps at 10⁶ ‰.
func perMille(part, whole int64) int {
	const most = 1_000_000
	if whole <= 0 || part/whole >= most/1000 {
		return most
	}
	if part > 1<<50 { // both shrink; the ratio stays
		part, whole = part>>10, max(1, whole>>10)
	}
	return int((part*1000 + whole - 1) / whole)
}

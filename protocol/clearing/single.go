package clearing

import (
	"cmp"
	"slices"

	"ramp/protocol"
)

// solveSingle solves a request of one unit without fixed bids in one pass, because
// the auction needs it often.
func solveSingle(p *Problem) Solution {
	var best, cheapest *Bid // within MaxCost; of all
	for i := range p.Bids {
		b := &p.Bids[i]
		if !p.eligible(b) || !fitsAlone(b, p.Capacity[b.Seller]) {
			continue
		}
		if cheapest == nil || b.Offer.Cost < cheapest.Offer.Cost {
			cheapest = b
		}
		if (p.MaxCost == 0 || b.Offer.Cost <= p.MaxCost) && (best == nil || compareSingle(p.Objective, b, best) < 0) {
			best = b
		}
	}
	switch {
	case best != nil:
		return p.covered([]Bid{*best}).proved(len(p.Bids))
	case cheapest != nil:
		return Solution{Status: TooDear, CostBound: cheapest.Offer.Cost, Exact: true, Steps: len(p.Bids)}
	default:
		return Solution{Status: Unoffered, Units: []int{0}, Exact: true, Steps: len(p.Bids)}
	}
}

// eligible reports whether b is valid and within MaxFinish.
func (p *Problem) eligible(b *Bid) bool { return b.Validate(p.Units) == nil && p.inTime(b) }

func (p *Problem) inTime(b *Bid) bool { return p.MaxFinish.IsZero() || !finish(b).After(p.MaxFinish) }

// fitsAlone reports whether a bid of one item fits into its seller's capacity.
func fitsAlone(b *Bid, capacity []protocol.Span) bool {
	slot := b.Offer.Items[0].Slot
	return !slices.ContainsFunc(capacity, func(c protocol.Span) bool {
		return slot.Cores > c.Cores && slot.Overlaps(protocol.Slot{Start: c.Start, End: c.End})
	})
}

func compareSingle(o protocol.Objective, x, y *Bid) int {
	if c := cmp.Or(cmp.Compare(x.Violations, y.Violations), cmp.Compare(x.Excess, y.Excess)); c != 0 {
		return c
	}
	cost := cmp.Compare(x.Offer.Cost, y.Offer.Cost)
	end := x.Offer.Items[0].Slot.End.Compare(y.Offer.Items[0].Slot.End)
	if o == protocol.ObjectiveTime {
		cost, end = end, cost
	}
	if c := cmp.Or(cost, end); c != 0 {
		return c
	}
	return compareBids(x, y)
}

package clearing_test

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// oracle tries every set of bids: nothing in it is shared with the solver but
// the meaning of a problem.
type oracle struct {
	p    clearing.Problem
	now  []clearing.Bid
	best []clearing.Bid
	min  bool // least cost is all that counts, whatever the ceiling

	within   protocol.Credits // unless zero, 20 times what a set may cost
	together bool             // all items begin at the same instant
}

func (o *oracle) solve() []clearing.Bid {
	if o.p.Objective == protocol.ObjectiveCostTime && !o.min {
		return o.solveCostTime()
	}
	o.now = slices.Clone(o.p.Fixed)
	o.try(0)
	return o.best
}

// solveCostTime tries every set twice: for the least cost, and for the earliest finish
// among those that cost at most 21 for each 20 of it.
func (o *oracle) solveCostTime() []clearing.Bid {
	cheapest := oracle{p: o.p, together: o.together}
	cheapest.p.Objective = protocol.ObjectiveCost
	best := cheapest.solve()
	if best == nil {
		return nil
	}
	soonest := oracle{p: o.p, within: 21 * total(best), together: o.together}
	soonest.p.Objective = protocol.ObjectiveTime
	return soonest.solve()
}

func (o *oracle) try(unit int) {
	for unit < o.p.Units && covers(o.now, unit) > 0 {
		unit++
	}
	if unit == o.p.Units {
		if o.feasible() && (o.best == nil || o.compare(o.now, o.best) < 0) {
			o.best = slices.Clone(o.now)
		}
		return
	}
	for _, b := range o.p.Bids {
		if covers([]clearing.Bid{b}, unit) == 0 {
			continue
		}
		o.now = append(o.now, b)
		if !overlap(o.now[:len(o.now)-1], b) && o.fitsDuring(b) { // more bids would not mend it
			o.try(unit + 1)
		}
		o.now = o.now[:len(o.now)-1]
	}
}

// overlap reports whether b is for a unit that set covers.
func overlap(set []clearing.Bid, b clearing.Bid) bool {
	return slices.ContainsFunc(b.Offer.Items, func(it protocol.Item) bool { return covers(set, it.Unit) > 0 })
}

func covers(set []clearing.Bid, unit int) int {
	n := 0
	for _, b := range set {
		for _, it := range b.Offer.Items {
			if it.Unit == unit {
				n++
			}
		}
	}
	return n
}

func (o *oracle) feasible() bool {
	for u := range o.p.Units {
		if covers(o.now, u) != 1 {
			return false
		}
	}
	if !o.min && o.p.MaxCost > 0 && total(o.now) > o.p.MaxCost {
		return false
	}
	if o.within > 0 && 20*total(o.now) > o.within {
		return false
	}
	first := o.now[0].Offer.Items[0].Slot.Start
	if o.together && slices.ContainsFunc(o.now, func(b clearing.Bid) bool {
		return slices.ContainsFunc(b.Offer.Items, func(it protocol.Item) bool { return !it.Slot.Start.Equal(first) })
	}) {
		return false
	}
	if end := latest(o.now); !o.p.MaxFinish.IsZero() && end.After(o.p.MaxFinish) {
		return false
	}
	return o.compatible()
}

// compatible reports whether groups and joint cores are kept.
func (o *oracle) compatible() bool {
	groups := map[[2]string]int{}
	for _, b := range o.now {
		if b.Offer.Group != "" {
			groups[[2]string{string(b.Seller), b.Offer.Group}]++
			if groups[[2]string{string(b.Seller), b.Offer.Group}] > 1 {
				return false
			}
		}
	}
	return o.fits()
}

// fits looks at every minute of every slot: the generator makes no shorter ones.
func (o *oracle) fits() bool {
	return !slices.ContainsFunc(o.now, func(b clearing.Bid) bool { return !o.fitsDuring(b) })
}

func (o *oracle) fitsDuring(b clearing.Bid) bool {
	for _, it := range b.Offer.Items {
		for t := it.Slot.Start; t.Before(it.Slot.End); t = t.Add(time.Minute) {
			for _, s := range o.p.Capacity[b.Seller] {
				if !t.Before(s.Start) && t.Before(s.End) && o.used(b.Seller, t) > s.Cores {
					return false
				}
			}
		}
	}
	return true
}

func (o *oracle) used(seller protocol.AgentID, t time.Time) (cores int) {
	for _, b := range o.now {
		for _, it := range b.Offer.Items {
			if b.Seller == seller && !t.Before(it.Slot.Start) && t.Before(it.Slot.End) {
				cores += it.Slot.Cores
			}
		}
	}
	return cores
}

func total(set []clearing.Bid) (sum protocol.Credits) {
	for _, b := range set {
		sum += b.Offer.Cost
	}
	return sum
}

func latest(set []clearing.Bid) (end time.Time) {
	for _, b := range set {
		for _, it := range b.Offer.Items {
			if it.Slot.End.After(end) {
				end = it.Slot.End
			}
		}
	}
	return end
}

// compare is the order of the package comment.
func (o *oracle) compare(x, y []clearing.Bid) int {
	if o.min {
		return cmp.Compare(total(x), total(y))
	}
	var vx, vy, ex, ey int
	for _, b := range x {
		vx, ex = vx+b.Violations, ex+b.Excess
	}
	for _, b := range y {
		vy, ey = vy+b.Violations, ey+b.Excess
	}
	first, second := cmp.Compare(total(x), total(y)), latest(x).Compare(latest(y))
	if o.p.Objective != protocol.ObjectiveCost {
		first, second = second, first
	}
	return cmp.Or(cmp.Compare(vx, vy), cmp.Compare(ex, ey), first, second, o.compareUnits(x, y))
}

func (o *oracle) compareUnits(x, y []clearing.Bid) int {
	for u := range o.p.Units {
		bx, by := coverer(x, u), coverer(y, u)
		if c := cmp.Or(latest([]clearing.Bid{bx}).Compare(latest([]clearing.Bid{by})), cmp.Compare(bx.Arrival, by.Arrival), cmp.Compare(bx.Seller, by.Seller), cmp.Compare(bx.Offer.ID, by.Offer.ID)); c != 0 {
			return c
		}
	}
	return 0
}

func coverer(set []clearing.Bid, unit int) clearing.Bid {
	for _, b := range set {
		if covers([]clearing.Bid{b}, unit) > 0 {
			return b
		}
	}
	panic("unit is not covered")
}

package clearing

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// solveTogether solves for each start that the bids have in common and keeps the best set.
// Of equal ones it is the earliest.
func solveTogether(p Problem) Solution {
	limit := p.Limit
	p.Together = false
	starts, at := p.starts()
	best, exact := Solution{Status: Conflicting, Units: p.everyUnit(), Exact: true}, true
	steps := len(p.Bids)
	var least protocol.Credits // that the sets above the ceiling cost
	var bounds []Solution      // of sets within it
	for i, start := range starts {
		p.Bids = at[start]
		p.Limit = max((limit-steps)/(len(starts)-i), 1)
		s := solveFor(&p)
		steps += s.Steps
		exact = exact && s.Exact
		if s.Status == Covered || s.Status == Undecided {
			bounds = append(bounds, s)
		}
		switch {
		case s.Status == Covered && (best.Status != Covered || s.before(best, p.Objective)):
			best = s
		case best.Status == Covered:
		case s.Status == Undecided:
			best.Status, best.Units = Undecided, nil
		case s.Status == TooDear && best.Status != Undecided && (least == 0 || s.CostBound < least):
			least = s.CostBound
			best = Solution{Status: TooDear, CostBound: least}
		}
	}
	best.Exact, best.Steps = exact, steps
	if best.Status == Covered && !exact { // the best start proves nothing of the others
		for _, s := range bounds {
			best.CostBound = min(best.CostBound, s.CostBound)
			best.FinishBound = slices.MinFunc([]time.Time{best.FinishBound, s.FinishBound}, time.Time.Compare)
		}
	}
	return best
}

// starts are the starts at which some bid for every unit begins, in order, and the bids that begin
// then; with fixed bids only theirs.
func (p Problem) starts() (list []time.Time, bids map[time.Time][]Bid) {
	units := map[time.Time]map[int]bool{}
	bids = map[time.Time][]Bid{}
	for i, b := range slices.Concat(p.Fixed, p.Bids) {
		if b.Validate(p.Units) != nil || !b.begins(b.Offer.Items[0].Slot.Start) {
			continue
		}
		at := b.Offer.Items[0].Slot.Start.UTC().Round(0)
		if units[at] == nil {
			units[at] = map[int]bool{}
		}
		for _, it := range b.Offer.Items {
			units[at][it.Unit] = true
		}
		if i >= len(p.Fixed) {
			bids[at] = append(bids[at], b)
		}
	}
	for at, covered := range units { // in any order: the list is sorted
		apart := slices.ContainsFunc(p.Fixed, func(f Bid) bool { return !f.begins(at) })
		if len(covered) == p.Units && !apart {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return list, bids
}

// begins reports whether all items of a bid start then.
func (b Bid) begins(start time.Time) bool {
	return !slices.ContainsFunc(b.Offer.Items, func(it protocol.Item) bool { return !it.Slot.Start.Equal(start) })
}

// before reports whether s is better than t by the objective.
func (s Solution) before(t Solution, o protocol.Objective) bool {
	first, second := cmp.Compare(s.Cost, t.Cost), s.Finish.Compare(t.Finish)
	if o == protocol.ObjectiveTime {
		first, second = second, first
	}
	return cmp.Or(cmp.Compare(s.Violations, t.Violations), cmp.Compare(s.Excess, t.Excess), first, second) < 0
}

func (p Problem) everyUnit() []int {
	list := make([]int, p.Units)
	for u := range list {
		list[u] = u
	}
	return list
}

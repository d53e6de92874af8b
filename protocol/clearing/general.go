package clearing

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// course is one run of Solve over several units.
type course struct {
	p      *Problem
	m      *model
	parts  []*search
	purse  *purse
	fixed  Solution // sums of the fixed bids
	exact  bool
	finish int // index into m.ends: no set finishes earlier
}

func solve(p *Problem) Solution {
	c := &course{p: p, m: newModel(p), purse: &purse{}, fixed: p.covered(nil), exact: true}
	first, tree := c.shares()
	c.purse.first, c.purse.tree = cmp.Or(p.first, first), tree
	c.purse.steps = c.m.work
	if missing := c.m.unoffered(); len(missing) > 0 {
		return Solution{Status: Unoffered, Units: missing, Exact: true}
	}
	if p.MaxCost > 0 && c.fixed.Cost > p.MaxCost {
		return Solution{Status: TooDear, CostBound: c.fixed.Cost, Exact: true}
	}
	if len(c.m.open) == 0 {
		return c.fixed.proved(0)
	}
	c.split()
	if s, ok := c.dive(); !ok {
		return s
	}
	c.improve()
	return c.solution()
}

// shares bounds each search without relaxation, and then the tree, by the part of the units that an
// offer covers on average: where that is large, few offers make a set, and trying them is fast.
// Where it is more than a quarter, the relaxation hardly splits any. Joint cores are for the tree.
func (c *course) shares() (first, tree int) {
	items, all := 0, len(c.m.offers)*len(c.m.open)
	for i := range c.m.offers {
		items += len(c.m.offers[i].units)
	}
	first, tree = c.p.Limit/leastFirst, c.p.Limit
	if 4*items <= all || len(c.m.open) <= 4 {
		parts := max(all/max(items, 1), 1)
		if parts < fewParts && len(c.m.capacity) == 0 {
			tree = c.p.Limit / fewTree
		}
		first = max(first, min(c.p.Limit/(parts*parts)*10, c.p.Limit/mostFirst))
	}
	if len(c.m.capacity) > 0 {
		first = min(first, jointFirst)
	}
	return max(first, 1), tree
}

// unoffered returns the units, as numbered in the problem, without any offer.
func (m *model) unoffered() []int {
	var missing []int
	for u, offers := range m.byUnit {
		if len(offers) == 0 {
			missing = append(missing, m.open[u])
		}
	}
	return missing
}

// split makes the parts. A ceiling on cost joins all units, unless cost comes first
// in the objective; then the result is compared with the ceiling afterwards.
func (c *course) split() {
	units := c.m.parts()
	ceiling := c.ceiling()
	if ceiling {
		units = [][]int{c.m.all()}
	}
	// The smallest first: they leave unused steps to the largest.
	slices.SortStableFunc(units, func(x, y []int) int { return len(x) - len(y) })
	for _, part := range units {
		m := c.m.part(part)
		c.parts = append(c.parts, newSearch(m, m.all(), c.purse))
	}
	if left := int64(c.p.MaxCost - c.fixed.Cost); ceiling && len(c.parts) > 0 {
		if most := int64(MaxOfferCost) * protocol.MaxUnits >> c.m.shift[cost]; left < most {
			c.parts[0].limit[cost] = left << c.m.shift[cost]
		}
	}
}

// ceiling reports whether the parts must keep MaxCost while they are solved.
func (c *course) ceiling() bool {
	return c.p.MaxCost > 0 && !(c.meetAll() && c.p.Objective != protocol.ObjectiveTime)
}

func (c *course) meetAll() bool {
	return !slices.ContainsFunc(c.m.offers, func(o offer) bool { return o.sums[violations] > 0 || o.sums[excess] > 0 })
}

// each runs f on every part, with an equal share of the remaining limit, and reports
// whether all succeeded.
func (c *course) each(f func(*search) bool) bool {
	all := true
	for i, s := range c.parts {
		left := c.p.Limit - c.purse.steps
		c.purse.limit = c.purse.steps + left/(len(c.parts)-i)
		all = f(s) && all
	}
	return all
}

// dive finds a first set for every part, or explains why it cannot.
func (c *course) dive() (Solution, bool) {
	guide := violations
	if c.meetAll() {
		guide = cost
	}
	c.each(func(s *search) bool { return s.dive(guide) })
	for _, s := range c.parts {
		if s.best == nil {
			return c.explain(), false
		}
	}
	return Solution{}, true
}

// improve follows the order in the package comment. It breaks ties only if the objective is proved.
func (c *course) improve() {
	steps := []func() bool{c.least(violations), c.least(excess), c.least(cost), c.earliest}
	if c.p.Objective == protocol.ObjectiveTime {
		steps[2], steps[3] = steps[3], steps[2]
	}
	for _, f := range steps {
		if c.exact = f(); !c.exact {
			return
		}
	}
	c.each((*search).settle)
}

// least finds the least sum at l. If it is proved, it holds all parts to it: until then, a part
// may exceed its own least for the sake of another.
func (c *course) least(l level) func() bool {
	above := func(s *search) bool { s.leave(func(o *offer) bool { return o.sums[l] > s.limit[l] }); return true }
	return func() bool { return c.each(func(s *search) bool { return s.minimise(l) }) && c.each(above) }
}

// earliest finds the least finish that all parts can meet, and holds them to it. A
// finish before that of the fixed bids gains nothing.
func (c *course) earliest() bool {
	exact := c.each(func(s *search) bool {
		least, ok := s.earliest(c.fixedEnd())
		c.finish = max(c.finish, least)
		return ok
	})
	late := func(s *search) bool { s.leave(func(o *offer) bool { return o.end > c.finish }); return true }
	return exact && c.each(late)
}

// fixedEnd is the last end in the model that is not after the fixed finish.
func (c *course) fixedEnd() int {
	n, _ := slices.BinarySearchFunc(c.m.ends, c.fixed.Finish, func(end, t time.Time) int {
		if end.After(t) {
			return 1
		}
		return -1
	})
	return n - 1
}

// solution combines the best sets of all parts, with the proved bounds.
func (c *course) solution() Solution {
	var won []Bid
	for _, s := range c.parts {
		for _, b := range s.best {
			won = append(won, *s.cover.m.offers[b].bid)
		}
	}
	s := c.p.covered(won).proved(c.purse.steps)
	s.Exact, s.Nodes = c.exact, c.purse.nodes
	if !c.exact {
		s.CostBound, s.FinishBound = min(s.Cost, c.costBound()), c.finishBound()
	}
	if c.p.MaxCost > 0 && s.Cost > c.p.MaxCost {
		return s.above(c.p.MaxCost)
	}
	return s
}

// above is the outcome for a set that costs more than the ceiling.
func (s Solution) above(ceiling protocol.Credits) Solution {
	status := Undecided
	if s.CostBound > ceiling {
		status = TooDear
	}
	return Solution{Status: status, CostBound: s.CostBound, Exact: status == TooDear, Steps: s.Steps, Nodes: s.Nodes}
}

func (c *course) costBound() protocol.Credits {
	sum := c.fixed.Cost
	for _, s := range c.parts {
		sum += protocol.Credits(s.proved(cost) >> c.m.shift[cost])
	}
	return sum
}

func (c *course) finishBound() time.Time {
	end := c.finish
	for _, s := range c.parts {
		end = max(end, s.soonest())
	}
	if t := c.m.ends[end]; t.After(c.fixed.Finish) {
		return t
	}
	return c.fixed.Finish
}

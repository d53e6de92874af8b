package clearing

import (
	"slices"

	"ramp/protocol"
)

// explain finds out why some part has no set.
func (c *course) explain() Solution {
	none := Solution{Status: Undecided}
	for _, s := range c.parts {
		switch {
		case s.best != nil || !s.ended:
		case c.ceiling():
			none = c.liftCeiling()
		default:
			none = Solution{Status: Conflicting, Units: c.conflict(s.cover.m, s.cover.units), Exact: true}
		}
		if none.Status != Undecided {
			break
		}
	}
	none.Steps += c.purse.steps
	none.Nodes += c.purse.nodes
	return none
}

// liftCeiling solves for the cheapest set at any cost, to distinguish a low ceiling
// from units that exclude each other.
func (c *course) liftCeiling() Solution {
	p := *c.p
	p.MaxCost, p.Objective = 0, protocol.ObjectiveCost
	p.Limit = max(c.p.Limit-c.purse.steps, 1)
	p.Bids = slices.Clone(p.Bids)
	for i := range p.Bids {
		p.Bids[i].Violations, p.Bids[i].Excess = 0, 0
	}
	s := solve(&p)
	if s.Status != Covered {
		return s
	}
	return Solution{Status: TooDear, CostBound: max(s.CostBound, c.p.MaxCost+1), Exact: true, Steps: s.Steps, Nodes: s.Nodes}
}

// conflict reduces units to a minimal group that no set covers together, as far as
// the limit permits.
func (c *course) conflict(m *model, units []int) []int {
	c.purse.limit = c.p.Limit
	units = slices.Clone(units)
	for i := 0; i < len(units); {
		fewer := slices.Delete(slices.Clone(units), i, i+1)
		s := newSearch(m, fewer, c.purse)
		if s.dive(cost) && s.best == nil {
			units = fewer
		} else {
			i++
		}
	}
	for i, u := range units {
		units[i] = m.open[u]
	}
	return units
}

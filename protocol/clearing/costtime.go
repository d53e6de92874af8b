package clearing

import (
	"time"

	"ramp/protocol"
)

// Slack divides the least cost: by so much at most a set of objective cost-time may cost
// more in order to finish earlier. A twentieth is 5 %.
const Slack = 20

// solveCostTime finds the least cost, and then the earliest finish among the sets that
// cost at most a Slack more. The cheapest set is one of them, so the second search breaks
// no further terms, and at its limit there is a set to fall back on.
func solveCostTime(p Problem) Solution {
	limit := p.Limit
	p.Objective = protocol.ObjectiveCost
	least := solveFor(&p)
	most := least.Cost + least.Cost/Slack
	if least.Status != Covered || most == 0 {
		return least
	}
	if p.MaxCost == 0 || most < p.MaxCost {
		p.MaxCost = most
	}
	p.Objective, p.Limit = protocol.ObjectiveTime, max(limit-least.Steps, 1)
	s := solveFor(&p)
	steps, nodes := s.Steps+least.Steps, s.Nodes+least.Nodes
	switch {
	case s.Status != Covered || worse(s, least):
		s = least
		s.Exact, s.FinishBound = false, time.Time{} // nothing is proved of dearer sets
	case !s.Exact || !least.Exact:
		s.Exact, s.CostBound = false, least.CostBound
	}
	s.Steps, s.Nodes = steps, nodes
	return s
}

// worse reports whether a set that was found at the limit breaks more terms than another,
// or finishes later.
func worse(s, than Solution) bool {
	switch {
	case s.Violations != than.Violations:
		return s.Violations > than.Violations
	case s.Excess != than.Excess:
		return s.Excess > than.Excess
	}
	return s.Finish.After(than.Finish)
}

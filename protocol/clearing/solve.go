package clearing

import (
	"math/bits"

	"ramp/protocol"
)

// Solve finds the best set of bids for p (winner determination, 002 §5.1.1). Its only
// error is ErrProblem. If no set exists, the Status of the Solution explains why.
func Solve(p Problem) (Solution, error) {
	if err := p.validate(); err != nil {
		return Solution{}, err
	}
	if p.Limit == 0 {
		p.Limit = p.defaultLimit()
	}
	if p.Objective == protocol.ObjectiveCostTime {
		return solveCostTime(p), nil
	}
	return solveFor(&p), nil
}

// solveFor solves for one of the objectives cost and time.
func solveFor(p *Problem) Solution {
	if p.Together {
		return solveTogether(*p)
	}
	if p.Units == 1 && len(p.Fixed) == 0 {
		return solveSingle(p)
	}
	return solve(p)
}

// defaultLimit is a part of DefaultLimit where there are so many items that a step waits for memory.
func (p *Problem) defaultLimit() int {
	items := 0
	for i := range p.Bids {
		items += len(p.Bids[i].Offer.Items)
	}
	return DefaultLimit / (1 + max(0, bits.Len(uint(items))-12)/2)
}

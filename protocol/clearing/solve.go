package clearing

import "ramp/protocol"

// Solve finds the best set of bids for p (winner determination, 002 §5.1.1). Its only
// error is ErrProblem. If no set exists, the Status of the Solution explains why.
func Solve(p Problem) (Solution, error) {
	if err := p.validate(); err != nil {
		return Solution{}, err
	}
	if p.Limit == 0 {
		p.Limit = DefaultLimit
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

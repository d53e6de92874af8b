package clearing

// Solve finds the best set of bids for p (specs: winner determination; 002
// §5.1.1). It fails with ErrProblem only; a request that nobody can meet is a
// Solution whose Status says why.
func Solve(p Problem) (Solution, error) {
	if err := p.validate(); err != nil {
		return Solution{}, err
	}
	if p.Limit == 0 {
		p.Limit = DefaultLimit
	}
	if p.Units == 1 && len(p.Fixed) == 0 {
		return solveSingle(&p), nil
	}
	return solve(&p), nil
}

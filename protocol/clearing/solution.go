package clearing

import "slices"

// covered is the solution with the fixed bids and those won.
func (p *Problem) covered(won []Bid) Solution {
	s := Solution{Status: Covered, Chosen: slices.Concat(p.Fixed, won)}
	slices.SortFunc(s.Chosen, func(x, y Bid) int { return firstUnit(&x) - firstUnit(&y) })
	for i := range s.Chosen {
		b := &s.Chosen[i]
		s.Cost += b.Offer.Cost
		s.Violations += b.Violations
		s.Excess += b.Excess
		if end := finish(b); end.After(s.Finish) {
			s.Finish = end
		}
	}
	return s
}

// proved marks s as the best.
func (s Solution) proved(steps int) Solution {
	s.Exact, s.CostBound, s.FinishBound, s.Steps = true, s.Cost, s.Finish, steps
	return s
}

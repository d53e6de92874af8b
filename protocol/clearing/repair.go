package clearing

import (
	"cmp"
	"slices"
)

// repair makes a set of the last picks: what of them goes together, the best
// first, and for the units that stay open the most promising offers. It is how
// good sets are found early; whether there are better ones is for the bound.
func (s *search) repair(l level) {
	mark := len(s.trail)
	picks := slices.Clone(s.prices.picks)
	slices.SortStableFunc(picks, func(x, y int) int { return cmp.Compare(s.prices.rc[x], s.prices.rc[y]) })
	taken := picks[:0]
	for _, b := range picks {
		if s.live[b] {
			s.take(b)
			taken = append(taken, b)
		}
	}
	for s.open > 0 {
		u := s.scarcest()
		if u < 0 {
			break
		}
		b := s.mostPromising(l, u)
		s.take(b)
		taken = append(taken, b)
	}
	if s.open == 0 {
		s.record()
	}
	for _, b := range taken {
		s.undo(b, len(s.trail))
	}
	s.undo(-1, mark)
}

// mostPromising is the live offer for u with the least reduced sum.
func (s *search) mostPromising(l level, u int) int {
	best := -1
	var least int64
	for _, b := range s.m.byUnit[u] {
		if !s.live[b] {
			continue
		}
		if rc := s.reduced(l, b); best < 0 || rc < least {
			best, least = b, rc
		}
	}
	return best
}

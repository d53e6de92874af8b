package clearing

import (
	"cmp"
	"slices"
)

// repair makes a set of the last picks: those that fit together, the best first, and
// the most promising offers for the open units. It finds good sets early.
func (s *search) repair(l level) {
	mark := len(s.cover.trail)
	picks := slices.Clone(s.prices.picks)
	slices.SortStableFunc(picks, func(x, y int) int { return cmp.Compare(s.prices.rc[x], s.prices.rc[y]) })
	taken := picks[:0]
	for _, b := range picks {
		if s.cover.live[b] {
			s.cover.take(b)
			taken = append(taken, b)
		}
	}
	for s.cover.open > 0 {
		u := s.cover.scarcest()
		if u < 0 {
			break
		}
		b := s.mostPromising(l, u)
		s.cover.take(b)
		taken = append(taken, b)
	}
	if s.cover.open == 0 {
		s.record()
	}
	for _, b := range taken {
		s.cover.undo(b, len(s.cover.trail))
	}
	s.cover.undo(-1, mark)
}

// mostPromising is the live offer for u with the least reduced sum.
func (s *search) mostPromising(l level, u int) int {
	best := -1
	var least int64
	for _, b := range s.cover.m.byUnit[u] {
		if !s.cover.live[b] {
			continue
		}
		if rc := s.prices.reduced(l, b); best < 0 || rc < least {
			best, least = b, rc
		}
	}
	return best
}

// adopt records the picks, which cover each unit once, if they form a set.
func (s *search) adopt(e evaluated) {
	if !e.whole {
		return
	}
	mark := len(s.cover.trail)
	picks := slices.Clone(s.prices.picks)
	for _, b := range picks {
		s.cover.take(b)
	}
	if s.cover.open == 0 {
		s.record()
	}
	for _, b := range picks {
		s.cover.undo(b, len(s.cover.trail))
	}
	s.cover.undo(-1, mark)
}

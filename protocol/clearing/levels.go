package clearing

import (
	"math"
	"slices"
)

// value is the sum of the best set at l.
func (s *search) value(l level) int64 {
	var sum int64
	for _, b := range s.best {
		sum += s.cover.m.offers[b].sums[l]
	}
	return sum
}

// end is the finish of the best set.
func (s *search) end() int {
	end := 0
	for _, b := range s.best {
		end = max(end, s.cover.m.offers[b].end)
	}
	return end
}

// dive looks for a first set, guided by l. It reports whether the question is settled.
func (s *search) dive(l level) bool {
	limit := s.limit[l]
	s.goal = l
	s.ended = s.explore(true)
	s.goal, s.limit[l] = nothing, limit
	return s.ended
}

// minimise finds the least sum at l within the limits, starting from the best set,
// and limits l to it from then on. It reports whether the sum is proved.
func (s *search) minimise(l level) bool {
	s.goal, s.step = l, s.spreads[l]
	s.limit[l] = s.value(l) - max(s.step, 1)
	ended := s.step == 0 || s.explore(false)
	s.goal, s.limit[l] = nothing, s.value(l)
	if ended {
		s.floor[l] = s.value(l)
	}
	return ended
}

// proved is a lower bound on the sum of any set at l.
func (s *search) proved(l level) int64 {
	if s.floor[l] == math.MinInt64 {
		s.prices.leave(0)
		s.floor[l] = s.prices.evaluate(l).bound
	}
	return max(s.floor[l], 0)
}

// spread divides the difference between any two sets at l; zero if all are equal.
func (s *search) spread(l level) int64 {
	base := make([]int64, len(s.cover.m.open))
	for _, u := range s.cover.units {
		for _, b := range s.cover.m.byUnit[u] {
			if o := &s.cover.m.offers[b]; len(o.units) == 1 {
				base[u] = o.sums[l]
				break
			}
		}
	}
	var g int64
	for _, u := range s.cover.units {
		for _, b := range s.cover.m.byUnit[u] {
			d := s.cover.m.offers[b].sums[l]
			for _, v := range s.cover.m.offers[b].units {
				d -= base[v]
			}
			g = gcd(g, max(d, -d))
		}
	}
	return g
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// earliest finds the least finish within the limits, but not before floor, by
// bisection. It returns the least finish not excluded, and whether best reaches it.
func (s *search) earliest(floor int) (int, bool) {
	lo, hi := max(s.soonest(), floor), s.end()
	for lo < hi {
		mid := (lo + hi) / 2
		mark := len(s.cover.trail)
		s.leave(func(o *offer) bool { return o.end > mid })
		ended := s.explore(true)
		s.cover.undo(-1, mark)
		switch {
		case s.found:
			hi = s.end()
		case ended:
			lo = mid + 1
		default:
			return lo, false
		}
	}
	return lo, true
}

// soonest is a lower bound on the finish: some unit has no earlier offer.
func (s *search) soonest() int {
	soonest := 0
	for _, u := range s.cover.units {
		first := -1
		for _, b := range s.cover.m.byUnit[u] {
			if end := s.cover.m.offers[b].end; s.cover.live[b] && (first < 0 || end < first) {
				first = end
			}
		}
		soonest = max(soonest, first)
	}
	return soonest
}

// leave kills offers for good, or until the caller undoes it.
func (s *search) leave(which func(o *offer) bool) {
	for b := range s.cover.m.offers {
		if s.cover.live[b] && which(&s.cover.m.offers[b]) {
			s.cover.kill(b)
		}
	}
}

// settle breaks ties: unit by unit it takes the offer of the lowest rank that is
// part of some set as good as best. It reports whether the limit sufficed.
func (s *search) settle() bool {
	s.prices.enter(0)
	s.once, s.found = false, false
	s.boundAll(0)
	s.rounds = nodeRounds
	for _, u := range s.cover.units {
		if s.cover.by[u] < 0 && !s.settleUnit(u) {
			return false
		}
	}
	return true
}

// settleUnit moves on to equally good sets with a lower-ranked offer of u, as long as it finds one.
func (s *search) settleUnit(u int) bool {
	for {
		chosen := s.best[slices.IndexFunc(s.best, func(b int) bool { return slices.Contains(s.cover.m.offers[b].units, u) })]
		mark, lower := len(s.cover.trail), false
		for _, b := range s.cover.m.byUnit[u] {
			lower = lower || s.cover.live[b] && b < chosen
			if b >= chosen {
				s.cover.kill(b)
			}
		}
		s.found = false
		ended := !lower || s.explore(true)
		s.cover.undo(-1, mark)
		switch {
		case s.found:
		case !ended:
			return false
		default:
			s.cover.take(chosen)
			return true
		}
	}
}

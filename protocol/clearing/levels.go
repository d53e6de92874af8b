package clearing

import "math"

// value is what the best set sums up to at l.
func (s *search) value(l level) int64 {
	var sum int64
	for _, b := range s.best {
		sum += s.m.offers[b].sums[l]
	}
	return sum
}

// end is the finish of the best set.
func (s *search) end() int {
	end := 0
	for _, b := range s.best {
		end = max(end, s.m.offers[b].end)
	}
	return end
}

// dive looks for a first set, guided by l; it reports whether it is known now
// if there is one.
func (s *search) dive(l level) bool {
	limit := s.limit[l]
	s.goal = l
	s.ended = s.run(true)
	s.goal, s.limit[l] = nothing, limit
	return s.ended
}

// minimise finds the least sum at l within the limits, from the best set there
// is, and limits l to it from then on. It reports whether it is proved.
func (s *search) minimise(l level) bool {
	s.goal, s.step = l, s.spreads[l]
	s.limit[l] = s.value(l) - max(s.step, 1)
	ended := s.step == 0 || s.run(false)
	s.goal, s.limit[l] = nothing, s.value(l)
	if ended {
		s.floor[l] = s.value(l)
	}
	return ended
}

// proved is a sum that no set stays below at l.
func (s *search) proved(l level) int64 {
	if s.floor[l] == math.MinInt64 {
		s.leave(0)
		s.floor[l] = s.evaluate(l).bound
	}
	return max(s.floor[l], 0)
}

// spread is a number that divides the difference at l between any two sets; zero
// if all sets are equal there.
func (s *search) spread(l level) int64 {
	base := make([]int64, len(s.m.open))
	for _, u := range s.units {
		for _, b := range s.m.byUnit[u] {
			if o := &s.m.offers[b]; len(o.units) == 1 {
				base[u] = o.sums[l]
				break
			}
		}
	}
	var g int64
	for _, u := range s.units {
		for _, b := range s.m.byUnit[u] {
			d := s.m.offers[b].sums[l]
			for _, v := range s.m.offers[b].units {
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

// earliest finds the least finish within the limits by halving, but looks for
// none before floor. It returns the least that is not excluded and whether best
// reaches it.
func (s *search) earliest(floor int) (int, bool) {
	lo, hi := max(s.soonest(), floor), s.end()
	for lo < hi {
		mid := (lo + hi) / 2
		mark := len(s.trail)
		s.restrict(mid)
		ended := s.run(true)
		s.undo(-1, mark)
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

// soonest is a finish that no set can beat: some unit has no earlier offer.
func (s *search) soonest() int {
	soonest := 0
	for _, u := range s.units {
		first := -1
		for _, b := range s.m.byUnit[u] {
			if end := s.m.offers[b].end; s.live[b] && (first < 0 || end < first) {
				first = end
			}
		}
		soonest = max(soonest, first)
	}
	return soonest
}

// restrict kills what ends after end.
func (s *search) restrict(end int) {
	for _, u := range s.units {
		for _, b := range s.m.byUnit[u] {
			if s.m.offers[b].end > end {
				s.kill(b)
			}
		}
	}
}

// settle decides ties: unit by unit it takes the offer of the lowest rank that
// is part of some set as good as best. It reports whether the limit let it.
func (s *search) settle() bool {
	s.enter(0)
	s.once, s.found = false, false
	s.boundAll(0)
	s.rounds = nodeRounds
	for _, u := range s.units {
		if s.by[u] < 0 && !s.settleUnit(u) {
			return false
		}
	}
	return true
}

func (s *search) settleUnit(u int) bool {
	for _, b := range s.m.byUnit[u] {
		if !s.live[b] {
			continue
		}
		mark := len(s.trail)
		chosen := s.inBest(b)
		s.take(b)
		if chosen {
			return true
		}
		if !s.run(true) {
			return false
		}
		if s.found {
			return true
		}
		s.undo(b, mark)
		s.kill(b)
	}
	panic("clearing: the best set has no offer for a unit")
}

func (s *search) inBest(b int) bool {
	for _, c := range s.best {
		if b == c {
			return true
		}
	}
	return false
}

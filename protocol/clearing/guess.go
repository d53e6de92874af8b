package clearing

import "math"

// guessed is the set that gave the last guess of multipliers.
type guessed struct {
	sum  int64   // its value
	was  []int64 // the multipliers before
	left []int64 // by row: the cores that it leaves
	any  bool    // a set was tried
}

// guess sets each unit's multiplier to the marginal price: the least sum of an offer
// whose seller has cores left beside its part of the best set. If many units are
// alike, that gives the best bound, which steps approach but never reach. It reports
// whether it tried a new set. Any multipliers give a valid bound.
func (s *search) guess(l level) bool {
	if s.best == nil || l != s.goal {
		return false
	}
	g := &s.guessed
	sum := s.value(l)
	if g.any && sum == g.sum {
		return false
	}
	g.sum, g.any = sum, true
	g.was = append(g.was[:0], s.prices.multi[l]...)
	g.left = append(g.left[:0], s.cover.capacity...)
	for _, b := range s.best {
		for _, u := range s.cover.m.offers[b].uses {
			g.left[u.row] -= u.cores
		}
	}
	for _, u := range s.cover.units {
		if s.cover.by[u] >= 0 {
			continue
		}
		if least := s.oneMore(l, u); least < math.MaxInt64 {
			s.prices.multi[l][u] = least
		}
	}
	return true
}

// oneMore is the least sum of an offer of unit u alone that fits into the cores left.
func (s *search) oneMore(l level, u int) int64 {
	least := int64(math.MaxInt64)
	for _, b := range s.cover.m.byUnit[u] {
		o := &s.cover.m.offers[b]
		if !s.cover.live[b] || len(o.units) > 1 || o.sums[l] >= least {
			continue
		}
		fits := true
		for _, r := range o.uses {
			fits = fits && s.guessed.left[r.row] >= r.cores
		}
		if fits {
			least = o.sums[l]
		}
	}
	return least
}

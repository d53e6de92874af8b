package clearing

import "math"

// guessed is the set by which multipliers were guessed last.
type guessed struct {
	sum  int64   // its value; see tried
	was  []int64 // the multipliers before
	left []int64 // by row: the cores that it leaves
	any  bool    // a set was tried
}

// guess sets the multiplier of each unit to the least that an offer asks for it whose
// seller has cores for one more beside its part of the best set: what another unit like
// it would cost. Where many units are alike that is where the best bound lies, which
// steps come near to and never meet. It reports whether the set is one that was not
// tried before; the bound of any multipliers holds.
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
	g.was = append(g.was[:0], s.multi[l]...)
	g.left = append(g.left[:0], s.room...)
	for _, b := range s.best {
		for _, u := range s.m.offers[b].uses {
			g.left[u.row] -= u.cores
		}
	}
	for _, u := range s.units {
		if s.by[u] >= 0 {
			continue
		}
		if least := s.oneMore(l, u); least < math.MaxInt64 {
			s.multi[l][u] = least
		}
	}
	return true
}

// oneMore is the least sum of an offer of unit u alone for which there are cores left.
func (s *search) oneMore(l level, u int) int64 {
	least := int64(math.MaxInt64)
	for _, b := range s.m.byUnit[u] {
		o := &s.m.offers[b]
		if !s.live[b] || len(o.units) > 1 || o.sums[l] >= least {
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

package clearing

import "math"

// Bounds of the bound.
const (
	rootRounds  = 200            // of moving the multipliers at the root
	nodeRounds  = 14             // at another node
	mostMulti   = int64(1) << 52 // no multiplier is larger, so that sums cannot overflow
	leastBound  = -int64(1) << 61
	stall       = 4  // rounds without a better bound before steps are halved
	fullStep    = 32 // parts of a step to the aim
	firstStep   = 48
	unitOfZero  = int64(1) << 20 // first step of level nothing
	secondsGain = 8              // with no limit, aim an eighth above the bound
)

// enter keeps the multipliers of this depth, so that siblings begin alike.
func (s *search) enter(depth int) {
	for len(s.depths) <= depth {
		var f frame
		for l := range f.multi {
			f.multi[l] = make([]int64, len(s.m.open))
		}
		s.depths = append(s.depths, f)
	}
	for l := range s.multi {
		copy(s.depths[depth].multi[l], s.multi[l])
	}
}

func (s *search) leave(depth int) {
	for l := range s.multi {
		copy(s.multi[l], s.depths[depth].multi[l])
	}
}

// boundAll reports whether a set within all limits may lie below this node, and
// kills offers that are in none.
func (s *search) boundAll(depth int) bool {
	limited := false
	for l := violations; l <= cost; l++ {
		if s.limit[l] == unlimited && l != s.goal || s.spreads[l] == 0 && s.best != nil {
			continue
		}
		limited = limited || s.limit[l] != unlimited
		if !s.bound(l, depth) {
			return false
		}
		if s.once && s.found {
			return true
		}
	}
	if !limited && !s.bound(nothing, depth) {
		return false
	}
	return true
}

// bound moves the multipliers of level l (Held and Karp's subgradient method, in
// integers) until the bound passes the limit, proves optimal, or rounds run out.
func (s *search) bound(l level, depth int) bool {
	rounds := nodeRounds
	if depth == 0 {
		rounds = s.rounds
	}
	keep := s.depths[depth].multi[l]
	best, size, idle := int64(math.MinInt64), int64(firstStep), 0
	for range rounds {
		e := s.evaluate(l)
		if e.bound > best {
			best, idle = e.bound, 0
			copy(keep, s.multi[l])
		} else if idle++; idle >= stall {
			size, idle = size/2, 0
			copy(s.multi[l], keep)
		}
		if best > s.limit[l] {
			s.note(l, depth, best)
			return false
		}
		if e.miss == 0 && s.adopt(e) || size == 0 || s.purse.empty() {
			break
		}
		if !s.move(l, s.stepFor(l, best, e.bound, e.miss, size)) {
			break
		}
	}
	copy(s.multi[l], keep)
	s.note(l, depth, best)
	if best > s.limit[l] {
		return false
	}
	return s.fix(l)
}

// note remembers what is proved at the root about the level being minimised.
func (s *search) note(l level, depth int, bound int64) {
	if depth == 0 && l == s.goal {
		s.floor[l] = max(s.floor[l], min(bound, s.limit[l]))
	}
}

func (s *search) stepFor(l level, best, now, miss, size int64) int64 {
	aim := s.limit[l]
	switch {
	case l == nothing:
		return max(unitOfZero*size/fullStep, 1)
	case aim == unlimited || aim-best > max(best, -best):
		aim = best + max(best, -best)/secondsGain + unitOfZero
	}
	return min(max((aim-now)/miss, 0), mostMulti)*size/fullStep + 1
}

// move raises the multipliers of units that nobody covers and lowers those that
// several cover; it reports whether any changed.
func (s *search) move(l level, step int64) bool {
	step = min(step, mostMulti)
	moved := false
	for _, u := range s.units {
		if s.by[u] >= 0 || s.prices.cover[u] == 1 {
			continue
		}
		k := 1 - s.prices.cover[u]
		was := s.multi[l][u]
		s.multi[l][u] = min(max(was+max(k, -8)*step, -mostMulti), mostMulti)
		moved = moved || s.multi[l][u] != was
	}
	return moved
}

// fix kills offers that would lift the bound over the limit; it reports whether
// every unit keeps one.
func (s *search) fix(l level) bool {
	limit := s.limit[l]
	if limit == unlimited {
		return true
	}
	e := s.evaluate(l)
	if e.bound > limit {
		return false
	}
	for _, k := range s.sellers {
		sub := s.prices.sub[k]
		for _, clique := range s.m.sellers[k].cliques {
			s.fixClique(limit, e.bound, sub, clique)
		}
	}
	return s.scarcest() >= 0 || s.open == 0
}

// fixClique uses two bounds on a set with offer b: the seller's best without
// regard to b, plus b; and the best of its other cliques, plus b.
func (s *search) fixClique(limit, bound int64, sub priced, clique []int) {
	var least int64
	for _, b := range clique {
		if s.live[b] {
			least = min(least, s.prices.rc[b])
		}
	}
	for _, b := range clique {
		if !s.live[b] {
			continue
		}
		rc := s.prices.rc[b]
		if max(bound+rc, bound-sub.exact+sub.loose-least+rc) > limit {
			s.kill(b)
		}
	}
}

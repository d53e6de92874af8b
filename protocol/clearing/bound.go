package clearing

import "math"

// Rules for moving multipliers, tuned on requests of 25 units. Any values give valid bounds.
const (
	rootRounds  = 1000 // of moving the multipliers at the root
	nodeRounds  = 14   // at another node
	fullStep    = 1024 // parts of the step that would reach the aim if all went well
	firstStep   = 256
	largeStep   = 16384 // steps grow while they succeed, up to this
	patience    = 4     // rounds without a better bound before they are halved
	gainPart    = 20    // the aim is this part above the bound, or the limit if that is nearer
	wayScale    = 256   // directions are kept in parts
	wayParts    = 16    // newPart of wayParts of a direction are the last misses,
	newPart     = 3     // the rest is the direction before
	mostCovered = 8     // times that a unit counts as covered
)

// Bounds that keep sums from overflowing, and the least gain to aim at.
const (
	mostMulti  = int64(1) << 52
	mostStep   = int64(1) << 48
	leastBound = -int64(1) << 61
	leastGain  = int64(1) << 20
)

// boundAll reports whether a set within all limits may lie below this node, and
// kills offers that cannot be part of one.
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
	return limited || s.tries <= 2*len(s.cover.units) || s.bound(nothing, depth)
}

// bound moves the multipliers of level l (Held and Karp's subgradient method, in
// integers) until the bound exceeds the limit, proves optimal, or rounds run out. It
// reports whether a set within the limit may exist.
func (s *search) bound(l level, depth int) bool {
	a := s.startAscent(l, depth)
	for range a.rounds {
		e := s.prices.evaluate(l)
		if a.climbed(e.bound) {
			copy(a.keep, s.prices.multi[l])
			if depth == 0 && e.miss > 0 {
				s.repair(l)
			}
		}
		if e.miss == 0 && a.best <= s.limit[l] {
			s.adopt(e)
		}
		if s.arrived(l, &a, e) || !s.prices.move(l, a.keep, s.aim(l, a.best)-a.best, a.size) {
			break
		}
	}
	copy(s.prices.multi[l], a.keep)
	s.note(l, depth, a.best)
	if depth > 0 && l == s.goal && a.best <= s.limit[l] {
		s.repair(l)
	}
	return a.best <= s.limit[l] && s.fix(l)
}

func (s *search) startAscent(l level, depth int) ascent {
	a := ascent{keep: s.prices.depths[depth].multi[l], best: math.MinInt64, size: firstStep, rounds: nodeRounds}
	if depth == 0 {
		a.rounds = s.rounds
	}
	clear(s.prices.way)
	s.prices.pack.limit = packNodes
	return a
}

// arrived reports whether more rounds would be useless.
func (s *search) arrived(l level, a *ascent, e evaluated) bool {
	found := s.once && s.found && s.goal == nothing
	return a.best > s.limit[l] || e.miss == 0 || a.size == 0 || found || s.purse.empty()
}

// ascent is one climb to a better bound.
type ascent struct {
	keep   []int64 // the best multipliers
	best   int64
	size   int64 // of steps, in parts of fullStep
	idle   int   // rounds without a better bound
	rounds int
}

// climbed notes a bound and reports whether it is the best.
func (a *ascent) climbed(bound int64) bool {
	if bound > a.best {
		a.best, a.idle = bound, 0
		a.size = min(a.size+a.size/8, largeStep)
		return true
	}
	if a.idle++; a.idle > patience {
		a.size, a.idle = a.size/2, 0
	}
	return false
}

// note remembers the bound that the root proves for the level being minimised.
func (s *search) note(l level, depth int, bound int64) {
	if depth == 0 && l == s.goal {
		s.floor[l] = max(s.floor[l], min(bound, s.limit[l]))
	}
}

// aim is the target of the steps: the limit, or a little more than the best so far
// while the limit is far away.
func (s *search) aim(l level, best int64) int64 {
	gain := max(best, -best)/gainPart + leastGain
	if l != nothing && s.limit[l]-gain < best {
		return s.limit[l] + 1
	}
	return best + gain
}

// fix kills offers that would lift the bound over the limit, and reports whether
// every unit still has one.
func (s *search) fix(l level) bool {
	limit := s.limit[l]
	if limit == unlimited {
		return true
	}
	e := s.prices.evaluate(l)
	if e.bound > limit {
		return false
	}
	for _, k := range s.cover.sellers {
		sub := s.prices.sub[k]
		for _, clique := range s.cover.m.sellers[k].cliques {
			s.fixClique(limit, e.bound, sub, clique)
		}
	}
	return s.cover.scarcest() >= 0 || s.cover.open == 0
}

// fixClique uses two bounds on a set with offer b: the seller's best regardless of b,
// plus b; and the best of its other cliques, plus b.
func (s *search) fixClique(limit, bound int64, sub priced, clique []int) {
	var least int64
	for _, b := range clique {
		if s.cover.live[b] {
			least = min(least, s.prices.rc[b])
		}
	}
	for _, b := range clique {
		if !s.cover.live[b] {
			continue
		}
		rc := s.prices.rc[b]
		if max(bound+rc, bound-sub.exact+sub.loose-least+rc) > limit {
			s.cover.kill(b)
		}
	}
}

package clearing

import (
	"cmp"
	"math"
	"slices"
)

// unlimited stands for no limit on a level, or nothing found yet.
const unlimited = math.MaxInt64

// search finds the best cover of one part of a model, level by level: each call
// of minimise, earliest or settle narrows limit and live for the next, and best
// always is the best set so far.
type search struct {
	m       *model
	units   []int // of this part
	sellers []int

	live  []bool // by offer: can still be bought
	count []int  // by unit: live offers
	by    []int  // by unit: the offer that covers it, -1: none
	need  []bool // by unit: to be covered, once; the others at most once
	open  int    // units not covered
	room  []int64
	sums  [levels]int64 // of the offers taken
	trail []int         // offers killed, to undo

	guessed guessed
	limit   [levels]int64 // most that a set may sum up to
	goal    level         // being minimised; nothing: any set will do
	step    int64         // divides the difference between any two sets at goal
	ended   bool          // the first dive came to an end

	spreads [levels]int64 // see spread
	multi   [levels][]int64
	floor   [levels]int64 // proved at the root
	rounds  int           // of moving the multipliers at the root
	once    bool          // stop at the first set
	found   bool          // best was found in this run
	tries   int           // nodes of this run
	best    []int         // offers; nil: none yet
	purse   *purse
	prices  pricer
	depths  []frame
}

// purse is what is left of the limit, and what was spent.
type purse struct{ steps, limit, nodes int }

func (p *purse) empty() bool { return p.steps >= p.limit }

// frame keeps the multipliers of one depth of the tree.
type frame struct{ multi [levels][]int64 }

func newSearch(m *model, units []int, purse *purse) *search {
	s := &search{m: m, units: units, purse: purse, open: len(units), goal: nothing, rounds: rootRounds}
	s.live = make([]bool, len(m.offers))
	s.count = make([]int, len(m.open))
	s.by = make([]int, len(m.open))
	s.room = slices.Clone(m.room)
	s.need = make([]bool, len(m.open))
	for u := range s.by {
		s.by[u] = -1
	}
	seen := make([]bool, len(m.sellers))
	for _, u := range units {
		s.need[u], s.count[u] = true, 0
		for _, b := range m.byUnit[u] {
			s.live[b] = true
			s.count[u]++
			if k := m.offers[b].seller; !seen[k] {
				seen[k] = true
				s.sellers = append(s.sellers, k)
			}
		}
	}
	for l := range s.limit {
		s.limit[l] = unlimited
		s.multi[l] = make([]int64, len(m.open))
		s.floor[l] = math.MinInt64
	}
	s.limit[nothing] = 0
	s.prices.grow(m)
	s.startMultipliers()
	for l := violations; l < nothing; l++ {
		s.spreads[l] = s.spread(l)
	}
	return s
}

// startMultipliers begins with each unit's least share of an offer's sum: exact
// when offers exclude nothing but each other's units.
func (s *search) startMultipliers() {
	for l := violations; l < nothing; l++ {
		for _, u := range s.units {
			least := int64(unlimited)
			for _, b := range s.m.byUnit[u] {
				o := &s.m.offers[b]
				least = min(least, o.sums[l]/int64(len(o.units)))
			}
			s.multi[l][u] = least
		}
	}
}

// kill makes offer b unavailable until undo.
func (s *search) kill(b int) {
	if !s.live[b] {
		return
	}
	s.live[b] = false
	for _, u := range s.m.offers[b].units {
		s.count[u]--
	}
	s.trail = append(s.trail, b)
}

// take buys offer b and kills all that it excludes, b itself included.
func (s *search) take(b int) {
	o := &s.m.offers[b]
	for l := range o.sums {
		s.sums[l] += o.sums[l]
	}
	for _, u := range o.units {
		s.by[u] = b
		if s.need[u] {
			s.open--
		}
	}
	for _, u := range o.units {
		for _, c := range s.m.byUnit[u] {
			s.kill(c)
		}
	}
	if o.group >= 0 {
		for _, c := range s.m.groups[o.group] {
			s.kill(c)
		}
	}
	s.takeRoom(o)
}

func (s *search) takeRoom(o *offer) {
	if len(o.uses) == 0 {
		return
	}
	for _, r := range o.uses {
		s.room[r.row] -= r.cores
	}
	for _, c := range s.m.sellers[o.seller].offers {
		if s.live[c] && !s.fits(c) {
			s.kill(c)
		}
	}
}

func (s *search) fits(b int) bool {
	for _, r := range s.m.offers[b].uses {
		if r.cores > s.room[r.row] {
			return false
		}
	}
	return true
}

// undo gives back offer b and what was killed since mark; b is -1 when nothing
// was taken.
func (s *search) undo(b, mark int) {
	for len(s.trail) > mark {
		c := s.trail[len(s.trail)-1]
		s.trail = s.trail[:len(s.trail)-1]
		s.live[c] = true
		for _, u := range s.m.offers[c].units {
			s.count[u]++
		}
	}
	if b < 0 {
		return
	}
	o := &s.m.offers[b]
	for l := range o.sums {
		s.sums[l] -= o.sums[l]
	}
	for _, u := range o.units {
		s.by[u] = -1
		if s.need[u] {
			s.open++
		}
	}
	for _, r := range o.uses {
		s.room[r.row] += r.cores
	}
}

// run searches the tree below the present state; it reports whether it came to
// the end of it (or, with once, to a set).
func (s *search) run(once bool) bool {
	s.once, s.found, s.tries = once, false, 0
	if len(s.depths) > 0 {
		s.leave(0)
	}
	s.node(0)
	return !s.purse.empty() || s.once && s.found
}

func (s *search) node(depth int) {
	s.purse.nodes++
	s.tries++
	if s.open == 0 {
		s.record()
		return
	}
	if s.scarcest() < 0 {
		return
	}
	mark := len(s.trail)
	defer s.undo(-1, mark)
	s.enter(depth)
	if !s.boundAll(depth) || s.done() {
		return
	}
	u := s.scarcest()
	if u < 0 {
		return
	}
	for _, b := range s.candidates(u) {
		at := len(s.trail)
		s.take(b)
		s.node(depth + 1)
		s.undo(b, at)
		if s.done() {
			return
		}
		s.leave(depth)
	}
}

func (s *search) done() bool { return s.purse.empty() || s.once && s.found }

// scarcest is the open unit with the fewest live offers; -1 if one has none.
func (s *search) scarcest() int {
	best := -1
	for _, u := range s.units {
		if s.by[u] >= 0 {
			continue
		}
		if s.count[u] == 0 {
			return -1
		}
		if best < 0 || s.count[u] < s.count[best] {
			best = u
		}
	}
	return best
}

// candidates are u's live offers, the most promising first: least sum beyond
// the multipliers of what they cover, then rank.
func (s *search) candidates(u int) []int {
	l := s.goal
	if l == nothing {
		l = s.guide()
	}
	live := make([]int, 0, s.count[u])
	for _, b := range s.m.byUnit[u] {
		if s.live[b] {
			live = append(live, b)
		}
	}
	slices.SortStableFunc(live, func(x, y int) int {
		return cmp.Compare(s.reduced(l, x), s.reduced(l, y))
	})
	return live
}

// guide is the level whose multipliers order candidates when any set will do:
// the last that is limited.
func (s *search) guide() level {
	for l := cost; l > violations; l-- {
		if s.limit[l] != unlimited {
			return l
		}
	}
	return nothing
}

func (s *search) reduced(l level, b int) int64 {
	o := &s.m.offers[b]
	rc := o.sums[l]
	for _, u := range o.units {
		rc -= s.multi[l][u]
	}
	return rc
}

// record keeps the present set if it is within every limit.
func (s *search) record() {
	for l := range s.sums {
		if s.sums[l] > s.limit[l] {
			return
		}
	}
	s.best = s.best[:0]
	for _, u := range s.units {
		if b := s.by[u]; !slices.Contains(s.best, b) {
			s.best = append(s.best, b)
		}
	}
	s.accept(s.sums[s.goal])
}

// accept notes that best is new and asks for better ones from now on.
func (s *search) accept(sum int64) {
	s.found = true
	if s.goal != nothing {
		s.limit[s.goal] = sum - max(s.step, 1)
	}
}

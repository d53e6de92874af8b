package clearing

import (
	"cmp"
	"math"
	"slices"
)

// unlimited means no limit on a level, or nothing found yet.
const unlimited = math.MaxInt64

// search finds the best set for one part of a model, level by level: each call of
// minimise, earliest or settle narrows limit and the live offers for the next. best
// always holds the best set so far.
type search struct {
	cover  cover
	prices pricer
	purse  *purse

	limit [levels]int64 // largest sum that a set may have
	goal  level         // being minimised; nothing: any set will do
	step  int64         // divides the difference between any two sets at goal
	ended bool          // the first dive came to an end

	spreads [levels]int64 // see spread
	floor   [levels]int64 // proved at the root
	rounds  int           // of moving the multipliers at the root
	once    bool          // stop at the first set
	found   bool          // best was found in this run
	tries   int           // nodes of this run
	best    []int         // offers; nil: none yet
	relaxed *relaxation   // made when the tree needs it
	ties    []branch      // the best set and all sets as good at tied are in these; nil: not known
	tied    level
}

// purse holds the limit on the search and its expenses.
type purse struct {
	steps, limit, nodes int
	first               int // steps before a tree over the relaxation
	tree                int // steps of that, before a search without it goes on
}

func (p *purse) empty() bool { return p.steps >= p.limit }

func newSearch(m *model, units []int, purse *purse) *search {
	s := &search{cover: newCover(m, units, purse), purse: purse, goal: nothing, rounds: rootRounds}
	for l := range s.limit {
		s.limit[l] = unlimited
		s.floor[l] = math.MinInt64
	}
	s.limit[nothing] = 0
	s.prices.begin(&s.cover, purse)
	for l := violations; l < nothing; l++ {
		s.spreads[l] = s.spread(l)
	}
	return s
}

// run searches the tree below the current state. It reports whether it reached the
// end of it (or a set, if once).
func (s *search) run(once bool) bool {
	s.once, s.found, s.tries = once, false, 0
	if len(s.prices.depths) > 0 {
		s.prices.leave(0)
	}
	s.node(0)
	return !s.purse.empty() || s.once && s.found
}

func (s *search) node(depth int) {
	s.purse.nodes++
	s.tries++
	if s.cover.open == 0 {
		s.record()
		return
	}
	if s.cover.scarcest() < 0 {
		return
	}
	mark := len(s.cover.trail)
	defer s.cover.undo(-1, mark)
	s.prices.enter(depth)
	if !s.boundAll(depth) || s.done() {
		return
	}
	u := s.cover.scarcest()
	if u < 0 {
		return
	}
	for _, b := range s.candidates(u) {
		at := len(s.cover.trail)
		s.cover.take(b)
		s.node(depth + 1)
		s.cover.undo(b, at)
		if s.done() {
			return
		}
		s.prices.leave(depth)
	}
}

func (s *search) done() bool { return s.purse.empty() || s.once && s.found }

// candidates returns u's live offers, the most promising first: by reduced sum, then rank.
func (s *search) candidates(u int) []int {
	l := s.goal
	if l == nothing {
		l = s.guide()
	}
	live := make([]int, 0, s.cover.count[u])
	for _, b := range s.cover.m.byUnit[u] {
		if s.cover.live[b] {
			live = append(live, b)
		}
	}
	slices.SortStableFunc(live, func(x, y int) int {
		return cmp.Compare(s.prices.reduced(l, x), s.prices.reduced(l, y))
	})
	return live
}

// guide is the level whose multipliers order candidates when any set will do: the
// last one with a limit.
func (s *search) guide() level {
	for l := cost; l > violations; l-- {
		if s.limit[l] != unlimited {
			return l
		}
	}
	return nothing
}

// record keeps the current set if it is within every limit.
func (s *search) record() {
	for l := range s.cover.sums {
		if s.cover.sums[l] > s.limit[l] {
			return
		}
	}
	s.best = s.best[:0]
	for _, u := range s.cover.units {
		if b := s.cover.by[u]; !slices.Contains(s.best, b) {
			s.best = append(s.best, b)
		}
	}
	s.accept(s.cover.sums[s.goal])
}

// accept notes a new best set, and demands better ones from now on.
func (s *search) accept(sum int64) {
	s.found = true
	if s.goal != nothing {
		s.limit[s.goal] = sum - max(s.step, 1)
	}
}

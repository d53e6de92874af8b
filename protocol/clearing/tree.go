package clearing

import (
	"cmp"
	"math"
	"slices"

	"ramp/protocol/clearing/lp"
)

// Rules of the tree, tuned on CATS instances of 64 to 256 goods. Any values give the same sets.
const (
	leastFirst  = 50      // part of the limit for each search without relaxation
	mostFirst   = 3       // see shares,
	jointFirst  = 100_000 // likewise, in steps
	fewParts    = 20      // likewise
	fewTree     = 5       // likewise
	strongTries = 10      // candidates whose branches are tried first,
	strongWork  = 200_000 // with so much work each, unless that was done before
	rootCliques = 16      // rounds of adding cliques at the root
	diveEvery   = 5       // nodes between dives
	diveParts   = 0.7     // every second dive takes all offers with larger parts
	mostBases   = 1 << 10 // kept for branches that wait
	leastRise   = 1e-6
	mostTies    = 1 << 8 // branches that may hold another set as good as the best
)

// explore looks for better sets (or one, if once), first by bounds from multipliers, which
// is fast where they suffice, then by a tree over the relaxation, and then by multipliers for all
// that is left of the limit. It reports whether it came to the end.
func (s *search) explore(once bool) (ended bool) {
	s.found = false
	if s.goal != nothing {
		s.ties = nil // those of another level
	}
	if s.ties == nil {
		ended = s.within(s.purse.first, func() bool { return s.run(once) })
	}
	if ended || s.purse.empty() {
		return ended
	}
	found := s.found
	if t := s.newTree(once); t != nil {
		steps := s.purse.tree
		if len(t.r.capacity) > len(s.cover.m.capacity) { // other levels are limited: multipliers are often better then
			steps = min(steps, (s.purse.limit-s.purse.steps)/fewTree)
		}
		ended = s.within(steps, t.grow)
		found = found || s.found
	}
	if !ended && !s.purse.empty() {
		ended = s.run(once)
	}
	s.found = s.found || found
	return ended
}

// within bounds the steps of f.
func (s *search) within(steps int, f func() bool) bool {
	limit := s.purse.limit
	defer func() { s.purse.limit = limit }()
	s.purse.limit = s.purse.steps + min(steps, limit-s.purse.steps)
	return f()
}

// tree is a search over branches of the relaxation: an offer is taken or left. The
// branch of the least bound is next, but a branch is followed down as long as it holds.
type tree struct {
	s     *search
	r     *relaxation
	level level
	once  bool
	base  int // of the cover's trail

	path    []choice
	waiting []branch
	cuts    []branch  // above the limit, but no dearer than the best set
	rises   [2][]rise // by offer: the cost added by leaving and by taking it
	count   int       // nodes so far
}

// choice takes or leaves an offer.
type choice struct {
	offer int
	take  bool
	mark  int // of the trail, once it is made
}

// branch is a node that waits.
type branch struct {
	bound int64
	path  []choice
	basis *lp.Basis
	age   int // of the relaxation
	depth int
}

// newTree prepares a tree, or returns nil if the relaxation is too large.
func (s *search) newTree(once bool) *tree {
	l := s.goal
	if l == nothing {
		l = s.guide()
	}
	limit := s.limit
	for k := range limit {
		if k := level(k); k == l || k == nothing || s.spreads[k] == 0 && s.best != nil {
			limit[k] = unlimited
		}
	}
	if s.relaxed == nil || s.relaxed.level != l || s.relaxed.limit != limit {
		s.relaxed = newRelaxation(&s.cover, s.purse, l, limit)
	}
	if s.relaxed == nil {
		return nil
	}
	n := len(s.cover.m.offers)
	return &tree{s: s, r: s.relaxed, level: l, once: once, rises: [2][]rise{make([]rise, n), make([]rise, n)}}
}

// grow searches the tree and reports whether it reached the end (or a set, if once).
func (t *tree) grow() bool {
	t.s.once, t.s.found = t.once, false
	defer t.s.cover.undo(-1, len(t.s.cover.trail))
	t.s.prices.enter(0)
	for l, limit := range t.r.limit { // the relaxation has rounded them
		if limit != unlimited && !t.s.bound(level(l), 0) {
			return true
		}
	}
	t.base = len(t.s.cover.trail)
	t.waiting = []branch{{bound: math.MinInt64}}
	if t.s.ties != nil && t.s.goal == nothing && t.s.tied == t.level {
		t.waiting = slices.Clone(t.s.ties)
	}
	for len(t.waiting) > 0 {
		next := t.pop()
		if next.bound > t.limit() {
			t.cut(next.bound, next.path)
			continue
		}
		t.follow(next)
		if t.s.done() {
			break
		}
	}
	t.restart()
	t.note()
	return !t.s.purse.empty() || t.once && t.s.found
}

// limit is below the bound where no set exists.
func (t *tree) limit() int64 { return min(t.s.limit[t.level], unlimited-1) }

// note remembers what the tree proves for the level being minimised: no set in it costs less
// than the cheapest branch that waits. One that stopped at the first set proves nothing.
func (t *tree) note() {
	if t.s.goal != t.level || t.once && t.s.found {
		return
	}
	least := t.limit()
	for _, b := range t.waiting {
		least = min(least, b.bound)
	}
	t.s.floor[t.level] = max(t.s.floor[t.level], least)
	if len(t.waiting) > 0 || len(t.cuts) > mostTies {
		return
	}
	t.s.tied, t.s.ties = t.level, []branch{}
	for _, b := range t.cuts {
		if b.bound <= t.s.value(t.level) {
			t.s.ties = append(t.s.ties, b)
		}
	}
}

// cut notes a branch that is left out because of its bound, if it may hold a set as good as
// the best. All other such sets are in branches like this.
func (t *tree) cut(bound int64, path []choice) {
	if bound <= t.limit()+max(t.s.step, 1) && len(t.cuts) <= mostTies {
		t.cuts = append(t.cuts, branch{bound: bound, path: slices.Clone(path), depth: len(path)})
	}
}

// pop removes the branch of the least bound; of equals, the deepest and latest.
func (t *tree) pop() branch {
	best := 0
	for i, b := range t.waiting {
		if w := &t.waiting[best]; cmp.Or(cmp.Compare(b.bound, w.bound), cmp.Compare(w.depth, b.depth)) <= 0 {
			best = i
		}
	}
	b := t.waiting[best]
	last := len(t.waiting) - 1
	t.waiting[best] = t.waiting[last]
	t.waiting = t.waiting[:last]
	t.s.purse.steps += last / 4
	return b
}

// follow goes down from a branch until nothing is left below, and lets the other branches wait.
func (t *tree) follow(b branch) {
	t.restart()
	for _, c := range b.path {
		if !t.choose(c.offer, c.take) {
			return
		}
	}
	if b.basis != nil && b.age == t.r.age {
		t.r.s.Return(b.basis)
	}
	bound := b.bound
	for {
		t.s.purse.nodes++
		t.count++
		pick, low, ok := t.visit(bound)
		if !ok {
			if t.s.purse.empty() && !(t.once && t.s.found) {
				t.waiting = append(t.waiting, branch{bound: max(bound, low)}) // not searched to its end
			}
			return
		}
		bound = max(bound, low)
		t.wait(bound, pick)
		if !t.choose(pick, true) || t.s.done() {
			return
		}
	}
}

// wait keeps the branch without an offer for later.
func (t *tree) wait(bound int64, offer int) {
	path := append(slices.Clone(t.path), choice{offer: offer})
	next := branch{bound: bound, path: path, depth: len(path)}
	if len(t.waiting) < mostBases {
		next.basis, next.age = t.r.s.Basis(), t.r.age
	}
	t.waiting = append(t.waiting, next)
	t.s.purse.steps += len(path)
}

// choose takes or leaves an offer, and reports whether a set may still exist.
func (t *tree) choose(b int, take bool) bool {
	cv := &t.s.cover
	if !cv.live[b] {
		return take == (cv.by[cv.m.offers[b].units[0]] == b)
	}
	c := choice{b, take, len(cv.trail)}
	if take {
		cv.take(b)
	} else {
		cv.kill(b)
	}
	t.path = append(t.path, c)
	return cv.open == 0 || cv.scarcest() >= 0
}

// rewind undoes the choices after the first n, but leaves what was killed before them.
func (t *tree) rewind(n int) {
	for len(t.path) > n {
		c := t.path[len(t.path)-1]
		t.path = t.path[:len(t.path)-1]
		if c.take {
			t.s.cover.undo(c.offer, c.mark)
		} else {
			t.s.cover.undo(-1, c.mark)
		}
	}
}

// restart goes back to the root.
func (t *tree) restart() {
	t.rewind(0)
	t.s.cover.undo(-1, t.base)
}

// visit solves the relaxation here and returns an offer to branch on, and a proved bound. It
// returns false if nothing better is left below.
func (t *tree) visit(floor int64) (pick int, bound int64, ok bool) {
	rounds := t.rounds()
	for {
		if t.s.purse.empty() {
			return 0, floor, false
		}
		outcome, bound := t.r.solve(t.limit(), math.MaxInt)
		floor = max(floor, bound)
		if floor > t.limit() {
			t.cut(floor, t.path)
			return 0, floor, false
		}
		if outcome == lp.Stopped && t.s.purse.empty() {
			return 0, floor, false
		}
		if outcome != lp.Optimal {
			pick, ok := t.anyOffer()
			return pick, floor, ok
		}
		if !t.fix(bound) {
			return 0, t.limit() + 1, false
		}
		split := t.split()
		if len(split) == 0 && t.adopt() || len(split) > 0 && t.tighten(&rounds) {
			continue // the limit is lower now, or the relaxation tighter
		}
		if t.s.done() {
			return 0, floor, false
		}
		if len(split) == 0 {
			pick, ok := t.anyOffer()
			return pick, floor, ok
		}
		if t.count%diveEvery == 1 {
			if t.dive(); t.s.done() || floor > t.limit() {
				t.cut(floor, t.path)
				return 0, floor, false
			}
		}
		pick, changed := t.strong(split)
		if !changed {
			return pick, floor, pick >= 0
		}
		if pick < 0 {
			return 0, t.limit() + 1, false
		}
	}
}

// rounds is how often cliques are added at this node. More at the root could add and drop the
// same ones for ever.
func (t *tree) rounds() int {
	if t.count == 1 {
		return rootCliques
	}
	return 1
}

// tighten adds cliques if rounds are left.
func (t *tree) tighten(rounds *int) bool {
	*rounds--
	return *rounds >= 0 && t.r.tighten()
}

// anyOffer is one of an open unit, for branches without the relaxation's help; false: there is
// none.
func (t *tree) anyOffer() (int, bool) {
	u := t.s.cover.scarcest()
	if t.s.cover.open == 0 {
		t.s.record()
		t.cut(t.s.cover.sums[t.level], t.path)
	}
	if u < 0 {
		return 0, false
	}
	return t.s.mostPromising(nothing, u), true
}

// fix leaves the offers that would lift the bound over the limit, and reports whether every
// open unit still has one.
func (t *tree) fix(bound int64) bool {
	limit := t.limit()
	for b, rc := range t.r.rc {
		if t.s.cover.live[b] && rc > 0 && bound > limit-rc {
			t.cut(bound+rc, append(t.path, choice{offer: b, take: true}))
			t.s.cover.kill(b)
		}
	}
	return t.s.cover.open == 0 || t.s.cover.scarcest() >= 0
}

// split are the offers taken in part, nearest to one half first.
func (t *tree) split() []int {
	var list []int
	for b, x := range t.r.x {
		if t.s.cover.live[b] && x > integral && x < 1-integral {
			list = append(list, b)
		}
	}
	far := func(b int) float64 { return math.Abs(t.r.x[b] - 0.5) }
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(far(x), far(y)) })
	return list
}

// adopt records the set of the offers that the relaxation takes, if it splits none. It
// reports whether that is better than before.
func (t *tree) adopt() bool {
	depth, was := len(t.path), t.limit()
	for b, x := range t.r.x {
		if x > 0.5 && t.s.cover.live[b] && !t.choose(b, true) {
			break
		}
	}
	if t.s.cover.open == 0 {
		t.s.record()
	}
	t.rewind(depth)
	return t.limit() < was
}

// dive takes the largest parts again and again until nothing is split, without looking back.
func (t *tree) dive() {
	basis, x := t.r.s.Mark(), slices.Clone(t.r.x)
	depth, mark := len(t.path), len(t.s.cover.trail)
	for !t.s.purse.empty() {
		split := t.split()
		if len(split) == 0 {
			t.adopt()
			break
		}
		best := split[0]
		for _, b := range split {
			if t.r.x[b] > t.r.x[best] {
				best = b
			}
		}
		ok := t.choose(best, true)
		for _, b := range split {
			if t.count/diveEvery%2 == 1 && t.r.x[b] > diveParts && t.s.cover.live[b] {
				ok = t.choose(b, true) && ok
			}
		}
		if !ok {
			break
		}
		outcome, bound := t.r.solve(t.limit(), math.MaxInt)
		if outcome != lp.Optimal || bound > t.limit() {
			break
		}
	}
	t.rewind(depth)
	t.s.cover.undo(-1, mark)
	t.r.x = x
	t.r.s.Return(basis)
	t.r.sync()
}

package clearing

import (
	"cmp"
	"slices"
)

// Bounds of one seller's problem.
const (
	packNodes    = 300            // of its search tree; after that its bound stands for it
	packRoot     = 4000           // at the root, when multipliers are nearly right
	tollMoves    = 4              // of the tolls, each time it is solved
	packHeads    = 64             // a problem with more is only bounded
	mostWorth    = int64(1) << 46 // of one row's cores at its toll; these three so
	mostTollStep = int64(1) << 40 // that nothing overflows
	mostOver     = int64(1) << 20 // cores
)

// packing is one seller's problem: which offers to pick, at most one of each
// head, none sharing a unit, within the rows, so that the gain is most. A toll on
// each core of a row bounds it: what the picks gain beyond their tolls, plus the
// tolls of all cores. Any tolls are valid, so they are kept from call to call and
// get better.
type packing struct {
	tolls [levels][]int64 // by row
	value []int64         // by offer: gain less tolls
	heads []head
	order []int // of heads, in filled
	seen  map[string]int64
	key   []byte
	rows  []int   // of this seller
	used  []int64 // by row
	gains []int64 // by row, inside assignRows
	now   []int
	best  []int
	last  [][]int // by seller: best when last solved
	most  int64   // gain of best
	limit int     // of nodes
	nodes int
}

// head is a clique's live offers with a gain, the most valuable first.
type head struct {
	offers []int
	value  int64 // of the first, or zero if that is negative
	gain   int64 // the most of one of them
	first  int   // row that they use
	row    int   // that bounds it in filled; -1: none
	rows   []int // that this head and later ones use, and units
	units  []int
	weight int64 // least cores of row that one of them needs
}

func (k *packing) grow(m *model) {
	for l := range k.tolls {
		k.tolls[l] = make([]int64, len(m.room))
	}
	k.seen = map[string]int64{}
	k.value = make([]int64, len(m.offers))
	k.used = make([]int64, len(m.room))
	k.gains = make([]int64, len(m.room))
	k.last = make([][]int, len(m.sellers))
}

// pack solves seller k's problem, whose cheapest picks exclude each other, and
// replaces the picks from at on. It reports whether it is solved exactly.
func (s *search) pack(l level, k, at int) bool {
	p := &s.prices.pack
	s.gather(k)
	s.startPacking(k)
	bound := s.moveTolls(l)
	p.nodes = 0
	switch {
	case p.most >= bound:
	case len(p.heads) > packHeads:
		p.nodes = p.limit + 1
	default:
		s.sortHeads(l)
		bound = min(bound, s.filled(0))
		s.branch(0, 0, s.worth(l))
	}
	p.last[k] = append(p.last[k][:0], p.best...)
	s.prices.picks = append(s.prices.picks[:at], p.best...)
	if p.nodes > p.limit {
		s.prices.sub[k].exact = max(s.prices.sub[k].exact, -bound)
		return false
	}
	s.prices.sub[k].exact = -p.most
	return true
}

// gather makes the heads of seller k, and its rows.
func (s *search) gather(k int) {
	p, rc := &s.prices.pack, s.prices.rc
	for _, r := range p.rows {
		p.used[r] = 0
	}
	p.heads, p.rows = p.heads[:0], p.rows[:0]
	for _, clique := range s.m.sellers[k].cliques {
		var gaining []int
		for _, b := range clique {
			if s.live[b] && rc[b] < 0 {
				gaining = append(gaining, b)
			}
		}
		if gaining != nil {
			p.heads = append(p.heads, head{offers: gaining})
		}
	}
	for _, h := range p.heads {
		for _, b := range h.offers {
			for _, u := range s.m.offers[b].uses {
				s.purse.steps++
				if p.used[u.row] == 0 {
					p.used[u.row] = 1
					p.rows = append(p.rows, u.row)
				}
			}
		}
	}
}

// startPacking begins with the better of what was best last time and what goes
// together when the offers of most gain are picked first.
func (s *search) startPacking(k int) {
	p, rc := &s.prices.pack, s.prices.rc
	p.best, p.most = p.best[:0], 0
	s.tryPicks(slices.DeleteFunc(p.last[k], func(b int) bool { return !s.live[b] || rc[b] >= 0 }))
	all := p.now[:0]
	for _, h := range p.heads {
		all = append(all, h.offers...)
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(rc[x], rc[y]) })
	s.tryPicks(all)
	p.now = p.now[:0]
}

// tryPicks picks in order what fits, and keeps that if it gains more.
func (s *search) tryPicks(offers []int) {
	p := &s.prices.pack
	var picked []int
	var sum int64
	for _, b := range offers {
		if s.pickFits(b) && !s.excluded(b, picked) {
			s.pick(b)
			picked = append(picked, b)
			sum -= s.prices.rc[b]
		}
	}
	for _, b := range picked {
		s.unpick(b)
	}
	if sum > p.most {
		p.best, p.most = append(p.best[:0], picked...), sum
	}
}

// excluded reports whether b is of the same clique as one of picked.
func (s *search) excluded(b int, picked []int) bool {
	for _, c := range picked {
		if s.m.offers[b].clique == s.m.offers[c].clique {
			return true
		}
	}
	return false
}

func (s *search) sortHeads(l level) {
	p := &s.prices.pack
	for i := range p.heads {
		h := &p.heads[i]
		for _, b := range h.offers {
			p.value[b] = s.valueOf(l, b)
		}
		slices.SortStableFunc(h.offers, func(x, y int) int { return cmp.Compare(p.value[y], p.value[x]) })
		h.value, h.gain, h.first = max(p.value[h.offers[0]], 0), 0, s.firstRow(h)
		for _, b := range h.offers {
			h.gain = max(h.gain, -s.prices.rc[b])
		}
	}
	slices.SortStableFunc(p.heads, func(x, y head) int {
		return cmp.Compare(x.first, y.first)
	})
	s.assignRows()
	s.relate()
}

// branch tries each offer of the i-th head, and none. Sum is the gain so far,
// worth the tolls of the cores that are left.
func (s *search) branch(i int, sum, worth int64) {
	p := &s.prices.pack
	s.purse.steps++
	if p.nodes++; p.nodes > p.limit {
		return
	}
	if sum > p.most {
		p.most, p.best = sum, append(p.best[:0], p.now...)
	}
	if i == len(p.heads) || sum+s.filled(i) <= p.most || sum+worth+s.hope(i) <= p.most || s.again(i, sum) {
		return
	}
	for _, b := range p.heads[i].offers {
		if !s.pickFits(b) {
			continue
		}
		s.pick(b)
		p.now = append(p.now, b)
		gain := -s.prices.rc[b]
		s.branch(i+1, sum+gain, worth+p.value[b]-gain)
		p.now = p.now[:len(p.now)-1]
		s.unpick(b)
	}
	s.branch(i+1, sum, worth)
}

// hope bounds what the heads from i on gain beyond their tolls.
func (s *search) hope(i int) int64 {
	p := &s.prices.pack
	var sum int64
	s.purse.steps += 2 * (len(p.heads) - i)
	for _, h := range p.heads[i:] {
		if h.value == 0 {
			continue
		}
		for _, b := range h.offers {
			if p.value[b] <= 0 {
				break
			}
			if s.pickFits(b) {
				sum += p.value[b]
				break
			}
		}
	}
	return sum
}

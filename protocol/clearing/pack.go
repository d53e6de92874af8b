package clearing

import (
	"cmp"
	"slices"
)

// Bounds of one seller's problem.
const (
	packNodes = 300 // nodes of its search tree; beyond them only its bound counts
	packHeads = 64  // a problem with more heads is only bounded
)

// packing solves one seller's problem: to pick offers of the highest gain, at most
// one per head, without a common unit, within the rows.
type packing struct {
	cover *cover
	purse *purse
	rc    []int64 // by offer: sum less the multipliers of its units
	taken []bool  // by unit
	heads []head
	order []int   // of heads, in filled
	rows  []int   // of this seller
	used  []bool  // by row: it is in rows
	gains []int64 // by row, inside assignRows
	now   []int
	best  []int
	last  [][]int // by seller: best when last solved
	most  int64   // gain of best
	limit int     // of nodes
	nodes int
}

// head has a clique's live offers with a gain, the highest gain first.
type head struct {
	offers []int
	gain   int64 // the highest of any offer
	first  int   // earliest row that they use
	row    int   // bounds the head in filled; -1: no row
	weight int64 // least cores of row that any offer needs
}

func (p *packing) begin(cv *cover, purse *purse, rc []int64) {
	m := cv.m
	p.cover, p.purse, p.rc = cv, purse, rc
	p.taken = make([]bool, len(m.open))
	p.used = make([]bool, len(m.capacity))
	p.gains = make([]int64, len(m.capacity))
	p.last = make([][]int, len(m.sellers))
}

// solve packs the offers of seller k, whose cheapest picks exclude each other, into
// best. It returns the gain and true, or a bound on the gain and false.
func (p *packing) solve(k int) (int64, bool) {
	p.gather(k)
	p.startPacking(k)
	var bound int64
	for _, h := range p.heads {
		bound += h.gain
	}
	p.nodes = 0
	switch {
	case p.most >= bound:
	case len(p.heads) > packHeads:
		p.nodes = p.limit + 1
	default:
		p.sortHeads()
		bound = min(bound, p.filled(0))
		p.branch(0, 0)
	}
	p.last[k] = append(p.last[k][:0], p.best...)
	if p.nodes > p.limit {
		return bound, false
	}
	return p.most, true
}

// compatible reports whether all of picks can be bought together.
func (p *packing) compatible(picks []int) bool {
	ok, n := true, 0
	for _, b := range picks {
		if ok = p.pickFits(b); !ok {
			break
		}
		p.pick(b)
		n++
	}
	for _, b := range picks[:n] {
		p.unpick(b)
	}
	return ok
}

func (p *packing) pickFits(b int) bool {
	p.purse.steps++
	for _, u := range p.cover.m.offers[b].units {
		if p.taken[u] {
			return false
		}
	}
	return p.cover.fits(b)
}

func (p *packing) pick(b int) {
	o := &p.cover.m.offers[b]
	p.purse.steps += (len(o.units) + len(o.uses)) / usesPerStep * 2 // the pick is undone as well
	for _, u := range o.units {
		p.taken[u] = true
	}
	for _, r := range o.uses {
		p.cover.capacity[r.row] -= r.cores
	}
}

func (p *packing) unpick(b int) {
	o := &p.cover.m.offers[b]
	for _, u := range o.units {
		p.taken[u] = false
	}
	for _, r := range o.uses {
		p.cover.capacity[r.row] += r.cores
	}
}

// gather makes the heads of seller k, and its rows.
func (p *packing) gather(k int) {
	rc := p.rc
	for _, r := range p.rows {
		p.used[r] = false
	}
	p.heads, p.rows = p.heads[:0], p.rows[:0]
	for _, clique := range p.cover.m.sellers[k].cliques {
		var gaining []int
		var gain int64
		for _, b := range clique {
			if p.cover.live[b] && rc[b] < 0 {
				gaining, gain = append(gaining, b), max(gain, -rc[b])
			}
		}
		if gaining != nil {
			p.heads = append(p.heads, head{offers: gaining, gain: gain})
		}
	}
	for _, h := range p.heads {
		for _, b := range h.offers {
			for _, u := range p.cover.m.offers[b].uses {
				p.purse.steps++
				if !p.used[u.row] {
					p.used[u.row] = true
					p.rows = append(p.rows, u.row)
				}
			}
		}
	}
}

// startPacking starts with the better of two sets: the last solution, or the offers
// of the highest gain that fit together.
func (p *packing) startPacking(k int) {
	rc := p.rc
	p.best, p.most = p.best[:0], 0
	p.tryPicks(slices.DeleteFunc(p.last[k], func(b int) bool { return !p.cover.live[b] || rc[b] >= 0 }))
	all := p.now[:0]
	for _, h := range p.heads {
		all = append(all, h.offers...)
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(rc[x], rc[y]) })
	p.tryPicks(all)
	p.now = p.now[:0]
}

// tryPicks picks the offers that fit, in order, and keeps them if they gain more.
func (p *packing) tryPicks(offers []int) {
	var picked []int
	var sum int64
	for _, b := range offers {
		if p.pickFits(b) && !p.excluded(b, picked) {
			p.pick(b)
			picked = append(picked, b)
			sum -= p.rc[b]
		}
	}
	for _, b := range picked {
		p.unpick(b)
	}
	if sum > p.most {
		p.best, p.most = append(p.best[:0], picked...), sum
	}
}

// excluded reports whether b shares a clique with one of picked.
func (p *packing) excluded(b int, picked []int) bool {
	p.purse.steps += len(picked) / usesPerStep
	for _, c := range picked {
		if p.cover.m.offers[b].clique == p.cover.m.offers[c].clique {
			return true
		}
	}
	return false
}

func (p *packing) sortHeads() {
	for i := range p.heads {
		h := &p.heads[i]
		slices.SortStableFunc(h.offers, func(x, y int) int { return cmp.Compare(p.rc[x], p.rc[y]) })
		h.first = p.firstRow(h)
	}
	slices.SortStableFunc(p.heads, func(x, y head) int { return cmp.Compare(x.first, y.first) })
	p.assignRows()
}

// branch tries each offer of the i-th head, and no offer. sum is the gain so far.
func (p *packing) branch(i int, sum int64) {
	p.purse.steps++
	if p.nodes++; p.nodes > p.limit || p.purse.empty() {
		p.nodes = p.limit + 1
		return
	}
	if sum > p.most {
		p.most, p.best = sum, append(p.best[:0], p.now...)
	}
	if i == len(p.heads) || sum+p.filled(i) <= p.most || sum+p.hope(i) <= p.most {
		return
	}
	for _, b := range p.heads[i].offers {
		if !p.pickFits(b) {
			continue
		}
		p.pick(b)
		p.now = append(p.now, b)
		p.branch(i+1, sum-p.rc[b])
		p.now = p.now[:len(p.now)-1]
		p.unpick(b)
	}
	p.branch(i+1, sum)
}

// hope bounds the gain of the heads from i on by the best offers that still fit.
func (p *packing) hope(i int) int64 {
	var sum int64
	p.purse.steps += 2 * (len(p.heads) - i)
	for _, h := range p.heads[i:] {
		if at := slices.IndexFunc(h.offers, p.pickFits); at >= 0 {
			sum -= p.rc[h.offers[at]]
		}
	}
	return sum
}

// firstRow is the first row, that is the earliest, that h's offers use.
func (p *packing) firstRow(h *head) int {
	first := len(p.cover.m.capacity)
	for _, b := range h.offers {
		for _, u := range p.cover.m.offers[b].uses {
			if !p.cover.m.cut[u.row] {
				first = min(first, u.row)
			}
		}
	}
	return first
}

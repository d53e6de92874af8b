package clearing

import (
	"cmp"
	"math/bits"
	"slices"
)

// assignRows gives each head a row to bound it. It repeatedly takes the row whose
// heads gain most, and finally sorts the heads by row and gain per core.
func (p *packing) assignRows() {
	for i := range p.heads {
		p.heads[i].row, p.heads[i].weight = -1, 0
	}
	p.order = p.order[:0]
	for i := range p.heads {
		p.order = append(p.order, i)
	}
	for row := p.richestRow(); row >= 0 && !p.purse.empty(); row = p.richestRow() {
		for i := range p.heads {
			if h := &p.heads[i]; h.row < 0 {
				if w := p.weight(h, row); w > 0 {
					h.row, h.weight = row, w
				}
			}
		}
	}
	slices.SortStableFunc(p.order, func(x, y int) int {
		return cmp.Or(cmp.Compare(p.heads[x].row, p.heads[y].row), compareRatio(p.heads[y], p.heads[x]))
	})
}

// richestRow returns the row whose unassigned heads gain most; -1 if none of them depends on a row.
func (p *packing) richestRow() int {
	row, most := -1, int64(0)
	for _, r := range p.rows {
		p.gains[r] = 0
	}
	for i := range p.heads {
		h := &p.heads[i]
		if h.row >= 0 {
			continue
		}
		for _, u := range p.cover.m.offers[h.offers[0]].uses {
			p.purse.steps++
			if p.gains[u.row] += h.gain; p.gains[u.row] > most && p.weight(h, u.row) > 0 {
				row, most = u.row, p.gains[u.row]
			}
		}
	}
	return row
}

// compareRatio compares gains per core, exactly.
func compareRatio(x, y head) int {
	xh, xl := bits.Mul64(uint64(x.gain), uint64(y.weight))
	yh, yl := bits.Mul64(uint64(y.gain), uint64(x.weight))
	return cmp.Or(cmp.Compare(xh, yh), cmp.Compare(xl, yl))
}

// weight is the least use of a row by an offer of h.
func (p *packing) weight(h *head, row int) int64 {
	least := int64(unlimited)
	for _, b := range h.offers {
		uses := p.cover.m.offers[b].uses // in order of rows
		i, ok := slices.BinarySearchFunc(uses, row, func(u use, row int) int { return cmp.Compare(u.row, row) })
		p.purse.steps++
		if !ok {
			return 0
		}
		least = min(least, uses[i].cores)
	}
	return least
}

// filled bounds the gain of the heads from i on: it fills each row with its heads by
// gain per core, the last head in part.
func (p *packing) filled(i int) int64 {
	var sum int64
	p.purse.steps += 2 * len(p.order)
	f := filling{row: -1}
	for _, j := range p.order {
		if j < i {
			continue
		}
		h := &p.heads[j]
		if h.row != f.row {
			sum += f.gain()
			f = p.newFilling(h.row)
		}
		if !slices.ContainsFunc(h.offers, p.pickFits) {
			continue
		}
		if h.row < 0 {
			sum += h.gain
		} else {
			f.add(h.gain, h.weight)
		}
	}
	return sum + f.gain()
}

// filling bounds the gain of one row's heads in two ways: all share the row; or one
// that needs more than half of it is free, and the others share.
type filling struct {
	row         int
	capacity    int64
	left, spare int64 // of the capacity, in the first way and the second
	all, small  int64 // gains
	large       int64
}

func (p *packing) newFilling(row int) filling {
	if row < 0 {
		return filling{row: row}
	}
	return filling{row: row, capacity: p.cover.capacity[row], left: p.cover.capacity[row], spare: p.cover.capacity[row]}
}

func (f *filling) add(gain, weight int64) {
	f.all += share(gain, weight, &f.left)
	if 2*weight > f.capacity {
		f.large = max(f.large, gain)
	} else {
		f.small += share(gain, weight, &f.spare)
	}
}

func (f *filling) gain() int64 { return min(f.all, f.small+f.large) }

// share takes weight from the capacity left and returns gain, or the fitting part of
// it, rounded up.
func share(gain, weight int64, left *int64) int64 {
	if weight > *left {
		gain = min(gain, (gain/weight+1)**left)
	}
	*left = max(*left-weight, 0)
	return gain
}

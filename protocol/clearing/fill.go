package clearing

import (
	"cmp"
	"math/bits"
	"slices"
)

// assignRows gives each head the row that is to bound it, by turns the row whose
// heads gain most, and sorts the heads by row and gain per core.
func (s *search) assignRows() {
	p := &s.prices.pack
	for i := range p.heads {
		p.heads[i].row, p.heads[i].weight = -1, 0
	}
	p.order = p.order[:0]
	for i := range p.heads {
		p.order = append(p.order, i)
	}
	for row := s.richestRow(); row >= 0; row = s.richestRow() {
		for i := range p.heads {
			if h := &p.heads[i]; h.row < 0 {
				if w := s.weight(h, row); w > 0 {
					h.row, h.weight = row, w
				}
			}
		}
	}
	slices.SortStableFunc(p.order, func(x, y int) int {
		return cmp.Or(cmp.Compare(p.heads[x].row, p.heads[y].row), compareRatio(p.heads[y], p.heads[x]))
	})
}

// richestRow is the row whose heads, of those without a row, gain most; -1 if
// there is none that one of them cannot do without.
func (s *search) richestRow() int {
	p := &s.prices.pack
	row, most := -1, int64(0)
	for _, r := range p.rows {
		p.gains[r] = 0
	}
	for i := range p.heads {
		h := &p.heads[i]
		if h.row >= 0 {
			continue
		}
		for _, u := range s.m.offers[h.offers[0]].uses {
			s.purse.steps++
			if p.gains[u.row] += h.gain; p.gains[u.row] > most && s.weight(h, u.row) > 0 {
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

// weight is the least that an offer of h uses of row.
func (s *search) weight(h *head, row int) int64 {
	least := int64(unlimited)
	for _, b := range h.offers {
		w := int64(0)
		for _, u := range s.m.offers[b].uses {
			if u.row == row {
				w = u.cores
			}
		}
		least = min(least, w)
	}
	return least
}

// filled bounds what the heads from i on gain: each row, for the heads it bounds,
// is filled by gain per core, the last head in part.
func (s *search) filled(i int) int64 {
	var sum int64
	s.purse.steps += 2 * len(s.prices.pack.order)
	f := filling{row: -1}
	for _, j := range s.prices.pack.order {
		if j < i {
			continue
		}
		h := &s.prices.pack.heads[j]
		if h.row != f.row {
			sum += f.gain()
			f = s.newFilling(h.row)
		}
		if !slices.ContainsFunc(h.offers, s.pickFits) {
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

// filling bounds what one row's heads can gain in two ways: all share the row;
// or one of those that need more than half of it has that for nothing, and the
// others share.
type filling struct {
	row         int
	room        int64
	left, spare int64 // of room, in the first way and the second
	all, small  int64 // gains
	large       int64
}

func (s *search) newFilling(row int) filling {
	if row < 0 {
		return filling{row: row}
	}
	return filling{row: row, room: s.room[row], left: s.room[row], spare: s.room[row]}
}

func (f *filling) add(gain, weight int64) {
	f.all += share(gain, weight, &f.left)
	if 2*weight > f.room {
		f.large = max(f.large, gain)
	} else {
		f.small += share(gain, weight, &f.spare)
	}
}

func (f *filling) gain() int64 { return min(f.all, f.small+f.large) }

// share takes weight from room and returns gain, or the part for which there is
// room, rounded up.
func share(gain, weight int64, room *int64) int64 {
	if weight > *room {
		gain = min(gain, (gain/weight+1)**room)
	}
	*room = max(*room-weight, 0)
	return gain
}

package clearing

import (
	"encoding/binary"
	"slices"
)

// firstRow is the first row, that is the earliest, that h's offers use.
func (s *search) firstRow(h *head) int {
	first := len(s.m.room)
	for _, b := range h.offers {
		for _, u := range s.m.offers[b].uses {
			if !s.m.cut[u.row] {
				first = min(first, u.row)
			}
		}
	}
	return first
}

// relate notes for each head which rows and units it and those after it need:
// what is left of them is all that matters from there on.
func (s *search) relate() {
	p := &s.prices.pack
	if len(p.seen) > packNodes { // to clear a map takes as long as it was ever large
		p.seen = map[string]int64{}
	}
	clear(p.seen)
	var rows, units []int
	for i := len(p.heads) - 1; i >= 0; i-- {
		h := &p.heads[i]
		for _, b := range h.offers {
			for _, u := range s.m.offers[b].uses {
				if !s.m.cut[u.row] && !slices.Contains(rows, u.row) {
					rows = append(rows, u.row)
				}
			}
			for _, u := range s.m.offers[b].units {
				if !slices.Contains(units, u) {
					units = append(units, u)
				}
			}
		}
		h.rows, h.units = rows, units
	}
}

// again reports whether the i-th head was reached before with as much left and no
// less gained.
func (s *search) again(i int, sum int64) bool {
	p := &s.prices.pack
	s.purse.steps += 4 * len(p.heads[i].rows)
	p.key = binary.AppendVarint(p.key[:0], int64(i))
	for _, r := range p.heads[i].rows {
		p.key = binary.AppendVarint(p.key, s.room[r])
	}
	for _, u := range p.heads[i].units {
		if s.prices.taken[u] {
			p.key = binary.AppendVarint(p.key, int64(u))
		}
	}
	if was, ok := p.seen[string(p.key)]; ok && was >= sum {
		return true
	}
	p.seen[string(p.key)] = sum
	return false
}

package clearing

import (
	"encoding/binary"
	"slices"
)

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

// relate notes the rows and units that each head and those after it need. Only their
// remainders matter from there on.
func (p *packing) relate() {
	if len(p.seen) > packNodes { // clearing a map takes time in its largest size ever
		p.seen = map[string]int64{}
	}
	clear(p.seen)
	var rows, units []int
	for i := len(p.heads) - 1; i >= 0; i-- {
		h := &p.heads[i]
		for _, b := range h.offers {
			p.purse.steps += len(p.cover.m.offers[b].uses) * (1 + len(rows)/16)
			for _, u := range p.cover.m.offers[b].uses {
				if !p.cover.m.cut[u.row] && !slices.Contains(rows, u.row) {
					rows = append(rows, u.row)
				}
			}
			for _, u := range p.cover.m.offers[b].units {
				if !slices.Contains(units, u) {
					units = append(units, u)
				}
			}
		}
		h.rows, h.units = rows, units
	}
}

// again reports whether the search reached the i-th head before with the same
// remainders and no lower gain.
func (p *packing) again(i int, sum int64) bool {
	p.purse.steps += 4 * len(p.heads[i].rows)
	p.key = binary.AppendVarint(p.key[:0], int64(i))
	for _, r := range p.heads[i].rows {
		p.key = binary.AppendVarint(p.key, p.cover.capacity[r])
	}
	for _, u := range p.heads[i].units {
		if p.taken[u] {
			p.key = binary.AppendVarint(p.key, int64(u))
		}
	}
	if was, ok := p.seen[string(p.key)]; ok && was >= sum {
		return true
	}
	p.seen[string(p.key)] = sum
	return false
}

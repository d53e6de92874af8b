package clearing

import "slices"

// parts splits the units so that no offer, group or row joins two parts: each
// part can then be solved alone.
func (m *model) parts() [][]int {
	f := newForest(len(m.open))
	byRow := make([]int, len(m.room)) // a unit whose offers use the row, plus one
	for i := range m.offers {
		o := &m.offers[i]
		for _, u := range o.units {
			f.join(o.units[0], u)
		}
		for _, r := range o.uses {
			if byRow[r.row] == 0 {
				byRow[r.row] = o.units[0] + 1
			}
			f.join(byRow[r.row]-1, o.units[0])
		}
	}
	for _, g := range m.groups {
		for _, b := range g {
			f.join(m.offers[g[0]].units[0], m.offers[b].units[0])
		}
	}
	return f.parts()
}

// whole is all units as one part.
func (m *model) whole() [][]int {
	all := make([]int, len(m.open))
	for u := range all {
		all[u] = u
	}
	return [][]int{all}
}

// forest is a union-find; the root of a part is its least unit.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

func (f forest) root(u int) int {
	for f[u] != u {
		f[u] = f[f[u]]
		u = f[u]
	}
	return u
}

func (f forest) join(u, v int) {
	u, v = f.root(u), f.root(v)
	f[max(u, v)] = min(u, v)
}

func (f forest) parts() [][]int {
	byRoot := make([][]int, len(f))
	for u := range f {
		r := f.root(u)
		byRoot[r] = append(byRoot[r], u)
	}
	return slices.DeleteFunc(byRoot, func(p []int) bool { return len(p) == 0 })
}

package clearing

import "slices"

// parts splits the units so that no offer, group or row connects two parts. Each part
// can then be solved alone.
func (m *model) parts() [][]int {
	f := newForest(len(m.open))
	byRow := make([]int, len(m.capacity)) // a unit whose offers use the row, plus one
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

// part is m reduced to these units, renumbered.
func (m *model) part(units []int) *model {
	n := &model{ends: m.ends, shift: m.shift, open: make([]int, len(units))}
	unit := make(map[int]int, len(units))
	var offers []int
	for i, u := range units {
		unit[u], n.open[i] = i, m.open[u]
		offers = append(offers, m.byUnit[u]...)
	}
	slices.Sort(offers)
	offers = slices.Compact(offers)
	rows := n.addRows(m, offers)
	related := m.relatives(offers)
	sellers, groups := map[int]int{}, map[int]int{}
	for i, b := range offers {
		o := m.offers[b]
		o.units, o.uses = slices.Clone(o.units), slices.Clone(o.uses)
		for j, u := range o.units {
			o.units[j] = unit[u]
		}
		for j := range o.uses {
			o.uses[j].row = rows[o.uses[j].row]
		}
		o.seller = index(sellers, related.root(i))
		if o.group >= 0 {
			o.group = index(groups, o.group)
		}
		n.offers = append(n.offers, o)
	}
	n.sellers, n.groups = make([]seller, len(sellers)), make([][]int, len(groups))
	n.addIndexes()
	n.addCliques()
	return n
}

// relatives joins offers that share a row or a group, or that share seller and first unit
// and have neither. A seller's other offers depend on each other no more than those of
// different sellers, so they count as such: their problem is then solved by looking.
func (m *model) relatives(offers []int) forest {
	f := newForest(len(offers))
	first := map[[3]int]int{}
	join := func(i int, key [3]int) {
		if j, ok := first[key]; ok {
			f.join(i, j)
		} else {
			first[key] = i
		}
	}
	for i, b := range offers {
		o := &m.offers[b]
		for _, u := range o.uses {
			join(i, [3]int{0, u.row})
		}
		switch {
		case o.group >= 0:
			join(i, [3]int{1, o.group})
		case len(o.uses) == 0:
			join(i, [3]int{2, o.seller, slices.Min(o.units)})
		}
	}
	return f
}

// addRows copies the rows that the offers use, in order, and returns their new numbers.
func (m *model) addRows(from *model, offers []int) map[int]int {
	var used []int
	for _, b := range offers {
		for _, u := range from.offers[b].uses {
			used = append(used, u.row)
		}
	}
	slices.Sort(used)
	rows := map[int]int{}
	for _, r := range slices.Compact(used) {
		rows[r] = len(m.capacity)
		m.capacity = append(m.capacity, from.capacity[r])
		m.cut = append(m.cut, from.cut[r])
	}
	return rows
}

// all is every unit.
func (m *model) all() []int {
	units := make([]int, len(m.open))
	for u := range units {
		units[u] = u
	}
	return units
}

// forest is a union-find; the root of a part is its least member.
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

package clearing

import (
	"cmp"
	"math/big"
	"slices"
	"sort"

	"ramp/protocol/clearing/lp"
)

// Bounds of cliques, tuned like the tree.
const (
	mostExcluded  = 1 << 12 // offers; among more, cliques are not looked for
	mostCliques   = 1 << 10 // in a relaxation
	cliquesATime  = 20      // are added at a node, the most violated first
	leastViolated = 0.05    // beyond one offer
)

// exclude returns, for each offer, the offers that no set holds beside it: they share a unit, a
// group, or need more cores together than there are.
func (m *model) exclude(purse *purse) []*big.Int {
	all := make([]*big.Int, len(m.offers))
	for b := range all {
		all[b] = new(big.Int)
	}
	both := func(b int, set *big.Int) {
		all[b].Or(all[b], set)
		purse.steps += 1 + len(set.Bits())/8
	}
	for _, lists := range [][][]int{m.byUnit, m.groups} {
		for _, list := range lists {
			set := new(big.Int)
			for _, b := range list {
				set.SetBit(set, b, 1)
			}
			for _, b := range list {
				both(b, set)
			}
		}
	}
	for row, users := range m.users() {
		slices.SortStableFunc(users, func(x, y use) int { return cmp.Compare(y.cores, x.cores) })
		large, set := 0, new(big.Int)
		for _, u := range slices.Backward(users) { // the more cores, the more others are too large beside it
			for ; large < len(users) && users[large].cores+u.cores > m.capacity[row]; large++ {
				set.SetBit(set, users[large].row, 1)
			}
			both(u.row, set)
		}
	}
	for b := range all {
		all[b].SetBit(all[b], b, 0)
	}
	return all
}

// users are the offers that use each row: their row is the offer here.
func (m *model) users() [][]use {
	list := make([][]use, len(m.capacity))
	for b := range m.offers {
		for _, u := range m.offers[b].uses {
			list[u.row] = append(list[u.row], use{b, u.cores})
		}
	}
	return list
}

// tighten adds cliques whose parts in the relaxation sum to more than one offer, and reports
// whether it found any.
func (r *relaxation) tighten() bool {
	if len(r.cover.m.offers) > mostExcluded || len(r.p.Right)-r.cliques > mostCliques {
		return false
	}
	if r.excluded == nil {
		r.excluded = r.cover.m.exclude(r.purse)
	}
	found := r.violated()
	if len(found) == 0 {
		return false
	}
	basis := r.s.Basis()
	if len(r.p.Right) > 3*r.cliques/2 {
		r.dropIdle()
		basis = nil
	}
	for _, clique := range found {
		for _, b := range clique {
			r.put(b, len(r.p.Right))
		}
		r.p.Equal, r.p.Right = append(r.p.Equal, false), append(r.p.Right, 1)
	}
	r.begin(basis)
	return true
}

// dropIdle drops the cliques without a price. Bases from before fit no longer.
func (r *relaxation) dropIdle() {
	r.age++
	number, rows := map[int]int{}, r.cliques
	for row := r.cliques; row < len(r.price); row++ {
		if r.price[row] < 0 {
			number[row] = rows
			rows++
		}
	}
	for b, parts := range r.parts {
		first := sort.Search(len(parts), func(i int) bool { return parts[i].row >= r.cliques })
		r.p.Columns[b], r.parts[b] = r.p.Columns[b][:first], parts[:first]
		for _, u := range parts[first:] {
			if n, kept := number[u.row]; kept {
				r.put(b, n)
			}
		}
	}
	r.p.Equal, r.p.Right = r.p.Equal[:rows], r.p.Right[:rows]
}

// put adds offer b to the clique of a row.
func (r *relaxation) put(b, row int) {
	r.p.Columns[b] = append(r.p.Columns[b], lp.Entry{Row: row, Value: 1})
	r.parts[b] = append(r.parts[b], use{row, 1})
}

// violated grows a clique from each offer taken in part, by those with the largest parts and
// then by any. It returns the most violated.
func (r *relaxation) violated() [][]int {
	var split []int
	for b, x := range r.x {
		if r.on[b] && x > integral && x < 1-integral {
			split = append(split, b)
		}
	}
	slices.SortStableFunc(split, func(x, y int) int { return cmp.Compare(r.x[y], r.x[x]) })
	var found [][]int
	var sums []float64
	common := new(big.Int)
	for _, first := range split {
		common.Set(r.excluded[first])
		clique, sum := []int{first}, r.x[first]
		grow := func(b int) {
			clique, sum = append(clique, b), sum+r.x[b]
			common.And(common, r.excluded[b])
			r.purse.steps += 1 + len(common.Bits())/8
		}
		for _, b := range split {
			if common.Bit(b) == 1 {
				grow(b)
			}
		}
		r.purse.steps += len(split) / 4
		if sum < 1+leastViolated {
			continue
		}
		for common.Sign() > 0 {
			grow(int(common.TrailingZeroBits()))
		}
		slices.Sort(clique)
		if slices.ContainsFunc(found, func(c []int) bool { return slices.Equal(c, clique) }) {
			continue
		}
		at, _ := slices.BinarySearchFunc(sums, sum, func(x, y float64) int { return cmp.Compare(y, x) })
		found, sums = slices.Insert(found, at, clique), slices.Insert(sums, at, sum)
	}
	return found[:min(len(found), cliquesATime)]
}

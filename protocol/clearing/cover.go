package clearing

import "slices"

// usesPerStep is how many uses of rows are tested or changed in a step of search.
const usesPerStep = 4

// cover is a set of offers in the making: what is bought, and what can still be bought beside it.
type cover struct {
	m       *model
	units   []int // of this part
	sellers []int

	live     []bool // by offer: can still be bought
	count    []int  // by unit: live offers
	by       []int  // by unit: the offer that covers it, -1: none
	need     []bool // by unit: to be covered once; the others at most once
	open     int    // units not covered
	capacity []int64
	sums     [levels]int64 // of the offers taken
	trail    []int         // offers killed, to undo
	purse    *purse
}

func newCover(m *model, units []int, purse *purse) cover {
	cv := cover{
		purse: purse, m: m, units: units, open: len(units), capacity: slices.Clone(m.capacity), live: make([]bool, len(m.offers)),
		count: make([]int, len(m.open)), by: make([]int, len(m.open)), need: make([]bool, len(m.open)),
	}
	for u := range cv.by {
		cv.by[u] = -1
	}
	seen := make([]bool, len(m.sellers))
	for _, u := range units {
		cv.need[u], cv.count[u] = true, 0
		for _, b := range m.byUnit[u] {
			cv.live[b] = true
			cv.count[u]++
			if k := m.offers[b].seller; !seen[k] {
				seen[k] = true
				cv.sellers = append(cv.sellers, k)
			}
		}
	}
	return cv
}

// kill makes offer b unavailable until undo.
func (cv *cover) kill(b int) {
	if !cv.live[b] {
		return
	}
	cv.live[b] = false
	cv.purse.steps++
	for _, u := range cv.m.offers[b].units {
		cv.count[u]--
	}
	cv.trail = append(cv.trail, b)
}

// take buys offer b, and kills b and every offer that it excludes.
func (cv *cover) take(b int) {
	o := &cv.m.offers[b]
	for l := range o.sums {
		cv.sums[l] += o.sums[l]
	}
	for _, u := range o.units {
		cv.by[u] = b
		if cv.need[u] {
			cv.open--
		}
	}
	for _, u := range o.units {
		cv.purse.steps += len(cv.m.byUnit[u]) / 4
		for _, c := range cv.m.byUnit[u] {
			cv.kill(c)
		}
	}
	if o.group >= 0 {
		for _, c := range cv.m.groups[o.group] {
			cv.kill(c)
		}
	}
	cv.takeCores(o)
}

func (cv *cover) takeCores(o *offer) {
	if len(o.uses) == 0 {
		return
	}
	for _, r := range o.uses {
		cv.capacity[r.row] -= r.cores
	}
	cv.purse.steps += len(o.uses)/4 + len(cv.m.sellers[o.seller].offers)/4
	for _, c := range cv.m.sellers[o.seller].offers {
		if cv.live[c] && !cv.fits(c) {
			cv.kill(c)
		}
	}
}

func (cv *cover) fits(b int) bool {
	for i, r := range cv.m.offers[b].uses {
		if i%usesPerStep == usesPerStep-1 {
			cv.purse.steps++
		}
		if r.cores > cv.capacity[r.row] {
			return false
		}
	}
	return true
}

// undo returns offer b and revives the offers killed since mark; b is -1 if no offer was taken.
func (cv *cover) undo(b, mark int) {
	for len(cv.trail) > mark {
		c := cv.trail[len(cv.trail)-1]
		cv.trail = cv.trail[:len(cv.trail)-1]
		cv.live[c] = true
		for _, u := range cv.m.offers[c].units {
			cv.count[u]++
		}
	}
	if b < 0 {
		return
	}
	o := &cv.m.offers[b]
	for l := range o.sums {
		cv.sums[l] -= o.sums[l]
	}
	for _, u := range o.units {
		cv.by[u] = -1
		if cv.need[u] {
			cv.open++
		}
	}
	for _, r := range o.uses {
		cv.capacity[r.row] += r.cores
	}
}

// scarcest is the open unit with the fewest live offers; -1 if some unit has no offer.
func (cv *cover) scarcest() int {
	best := -1
	for _, u := range cv.units {
		if cv.by[u] >= 0 {
			continue
		}
		if cv.count[u] == 0 {
			return -1
		}
		if best < 0 || cv.count[u] < cv.count[best] {
			best = u
		}
	}
	return best
}

package clearing

// pricer owns the multipliers, and solves each seller's own problem for them: which
// of its offers, within groups and cores, are worth more than they cost.
type pricer struct {
	cover *cover
	purse *purse

	multi   [levels][]int64 // by unit
	depths  []frame
	rc      []int64  // by offer: sum less the multipliers of its units
	sub     []priced // by seller
	covered []int64  // by unit: how many picks cover it
	way     []int64  // by unit: last move of its multiplier, in 1/wayScale
	picks   []int

	pack packing
}

// frame keeps the multipliers of one depth of the tree.
type frame struct{ multi [levels][]int64 }

// priced is the least sum of one seller's picks, or a bound on it. loose ignores
// exclusions between cliques.
type priced struct{ exact, loose int64 }

// evaluated is a Lagrangian bound, and the distance of its picks from a cover.
type evaluated struct {
	bound int64
	miss  int64 // squared
	whole bool  // every seller's problem was solved exactly
}

func (p *pricer) begin(cv *cover, purse *purse) {
	m := cv.m
	p.cover, p.purse = cv, purse
	for l := range p.multi {
		p.multi[l] = make([]int64, len(m.open))
	}
	p.rc = make([]int64, len(m.offers))
	p.sub = make([]priced, len(m.sellers))
	p.covered = make([]int64, len(m.open))
	p.way = make([]int64, len(m.open))
	p.pack.begin(cv, purse, p.rc)
	p.startMultipliers()
}

// startMultipliers starts with each unit's least share of an offer's sum. This is
// exact if offers only exclude each other by their units.
func (p *pricer) startMultipliers() {
	for l := violations; l < nothing; l++ {
		for _, u := range p.cover.units {
			least := int64(unlimited)
			for _, b := range p.cover.m.byUnit[u] {
				o := &p.cover.m.offers[b]
				least = min(least, o.sums[l]/int64(len(o.units)))
			}
			p.multi[l][u] = least
		}
	}
}

// enter saves the multipliers of this depth, so that siblings start alike.
func (p *pricer) enter(depth int) {
	for len(p.depths) <= depth {
		var f frame
		for l := range f.multi {
			f.multi[l] = make([]int64, len(p.cover.m.open))
		}
		p.depths = append(p.depths, f)
	}
	for l := range p.multi {
		copy(p.depths[depth].multi[l], p.multi[l])
	}
}

func (p *pricer) leave(depth int) {
	for l := range p.multi {
		copy(p.multi[l], p.depths[depth].multi[l])
	}
}

func (p *pricer) reduced(l level, b int) int64 {
	o := &p.cover.m.offers[b]
	rc := o.sums[l]
	for _, u := range o.units {
		rc -= p.multi[l][u]
	}
	return rc
}

// evaluate bounds level l from below for all sets under the current node.
func (p *pricer) evaluate(l level) evaluated {
	e := evaluated{bound: p.cover.sums[l], whole: true}
	for _, u := range p.cover.units {
		p.covered[u] = 0
		if p.cover.by[u] < 0 {
			e.bound += p.multi[l][u]
		}
	}
	p.purse.steps += len(p.cover.units) / usesPerStep
	p.picks = p.picks[:0]
	for _, k := range p.cover.sellers {
		if e.bound < leastBound {
			break
		}
		exact := p.price(l, k)
		e.whole = e.whole && exact
		e.bound += p.sub[k].exact
	}
	for _, b := range p.picks {
		for _, u := range p.cover.m.offers[b].units {
			p.covered[u]++
		}
	}
	for _, u := range p.cover.units {
		if p.cover.by[u] < 0 {
			e.miss += (p.covered[u] - 1) * (p.covered[u] - 1)
		}
	}
	return e
}

// price solves seller k's problem, and reports whether the solution is exact.
func (p *pricer) price(l level, k int) bool {
	sl := &p.cover.m.sellers[k]
	var loose int64
	at := len(p.picks)
	for _, clique := range sl.cliques {
		least, pick := int64(0), -1
		for _, b := range clique {
			if !p.cover.live[b] {
				continue
			}
			p.purse.steps += len(p.cover.m.offers[b].units) / usesPerStep
			rc := p.reduced(l, b)
			p.rc[b] = rc
			if rc < least {
				least, pick = rc, b
			}
		}
		p.purse.steps += len(clique)
		if pick >= 0 {
			loose = max(loose+least, leastBound) // useless as a bound, but no overflow
			p.picks = append(p.picks, pick)
		}
	}
	if loose <= leastBound {
		p.sub[k] = priced{leastBound, leastBound}
		return false
	}
	p.sub[k] = priced{loose, loose}
	if sl.simple || len(p.picks)-at < 2 || p.pack.compatible(p.picks[at:]) {
		return true
	}
	if p.purse.empty() { // the bound will do
		return false
	}
	gain, exact := p.pack.solve(k)
	p.picks = append(p.picks[:at], p.pack.best...)
	p.sub[k].exact = -gain
	if !exact {
		p.sub[k].exact = max(loose, -gain)
	}
	return exact
}

// move raises the multipliers of uncovered units and lowers those of units covered
// several times. It blends in the last direction, because the bounds of many sellers
// zigzag. It reports whether any multiplier changed.
func (p *pricer) move(l level, from []int64, gap, size int64) bool {
	var norm int64
	for _, u := range p.cover.units {
		if p.cover.by[u] < 0 {
			miss := max(1-p.covered[u], -mostCovered) * wayScale
			way := (miss*newPart + p.way[u]*(wayParts-newPart)) / wayParts
			p.way[u] = way
			norm += way * way
		}
	}
	step := min(min(gap/max(norm/wayScale, 1), mostStep)*size/fullStep, mostStep)
	moved := false
	for _, u := range p.cover.units {
		if p.cover.by[u] >= 0 {
			continue
		}
		was := p.multi[l][u]
		p.multi[l][u] = min(max(from[u]+(step+1)*p.way[u], -mostMulti), mostMulti)
		moved = moved || p.multi[l][u] != was
	}
	return moved
}

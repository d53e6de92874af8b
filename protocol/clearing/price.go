package clearing

import (
	"slices"
)

// pricer solves, for given multipliers, each seller's own problem: which of its
// offers, groups and cores kept, are worth more than they cost.
type pricer struct {
	rc    []int64  // by offer: sum less the multipliers of its units
	sub   []priced // by seller
	cover []int64  // by unit: how many picks cover it
	way   []int64  // by unit: where its multiplier was moved last, in 1/wayScale
	picks []int
	taken []bool // by unit, inside one seller's problem

	pack packing
}

// priced is the least sum of one seller's picks: exact, or the bound that stands
// for it; loose is that without what excludes across cliques.
type priced struct{ exact, loose int64 }

// evaluated is a Lagrangian bound and how far its picks miss a cover.
type evaluated struct {
	bound int64
	miss  int64 // squared
	whole bool  // every seller's problem was solved exactly
}

func (p *pricer) grow(m *model) {
	p.pack.grow(m)
	p.rc = make([]int64, len(m.offers))
	p.sub = make([]priced, len(m.sellers))
	p.cover = make([]int64, len(m.open))
	p.way = make([]int64, len(m.open))
	p.taken = make([]bool, len(m.open))
}

// evaluate bounds level l from below over all sets under the present node.
func (s *search) evaluate(l level) evaluated {
	p := &s.prices
	e := evaluated{bound: s.sums[l], whole: true}
	for _, u := range s.units {
		p.cover[u] = 0
		if s.by[u] < 0 {
			e.bound += s.multi[l][u]
		}
	}
	p.picks = p.picks[:0]
	for _, k := range s.sellers {
		if e.bound < leastBound {
			break
		}
		exact := s.price(l, k)
		e.whole = e.whole && exact
		e.bound += p.sub[k].exact
	}
	for _, b := range p.picks {
		for _, u := range s.m.offers[b].units {
			p.cover[u]++
		}
	}
	for _, u := range s.units {
		if s.by[u] < 0 {
			e.miss += (p.cover[u] - 1) * (p.cover[u] - 1)
		}
	}
	return e
}

// price solves seller k's problem and reports whether exactly.
func (s *search) price(l level, k int) bool {
	p, sl := &s.prices, &s.m.sellers[k]
	var loose int64
	at := len(p.picks)
	for _, clique := range sl.cliques {
		least, pick := int64(0), -1
		for _, b := range clique {
			if !s.live[b] {
				continue
			}
			rc := s.reduced(l, b)
			p.rc[b] = rc
			if rc < least {
				least, pick = rc, b
			}
		}
		s.purse.steps += len(clique)
		if pick >= 0 {
			loose = max(loose+least, leastBound) // worthless there, but no overflow
			p.picks = append(p.picks, pick)
		}
	}
	if loose <= leastBound {
		p.sub[k] = priced{leastBound, leastBound}
		return false
	}
	p.sub[k] = priced{loose, loose}
	if sl.simple || len(p.picks)-at < 2 || s.compatible(p.picks[at:]) {
		return true
	}
	return s.pack(l, k, at)
}

// compatible reports whether all of picks can be bought together.
func (s *search) compatible(picks []int) bool {
	ok, n := true, 0
	for _, b := range picks {
		if ok = s.pickFits(b); !ok {
			break
		}
		s.pick(b)
		n++
	}
	for _, b := range picks[:n] {
		s.unpick(b)
	}
	return ok
}

func (s *search) pickFits(b int) bool {
	for _, u := range s.m.offers[b].units {
		if s.prices.taken[u] {
			return false
		}
	}
	return s.fits(b)
}

func (s *search) pick(b int) {
	o := &s.m.offers[b]
	for _, u := range o.units {
		s.prices.taken[u] = true
	}
	for _, r := range o.uses {
		s.room[r.row] -= r.cores
	}
}

func (s *search) unpick(b int) {
	o := &s.m.offers[b]
	for _, u := range o.units {
		s.prices.taken[u] = false
	}
	for _, r := range o.uses {
		s.room[r.row] += r.cores
	}
}

// adopt records the picks, which cover each unit once, if they are a set.
func (s *search) adopt(e evaluated) {
	if !e.whole {
		return
	}
	mark := len(s.trail)
	picks := slices.Clone(s.prices.picks)
	for _, b := range picks {
		s.take(b)
	}
	if s.open == 0 {
		s.record()
	}
	for _, b := range picks {
		s.undo(b, len(s.trail))
	}
	s.undo(-1, mark)
}

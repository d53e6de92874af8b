package clearing

import (
	"cmp"
	"slices"
)

// pricingNodes bounds the search of one seller's problem; after it the looser
// bound stands.
const pricingNodes = 400

// pricer solves, for given multipliers, each seller's own problem: which of its
// offers, groups and cores kept, are worth more than they cost.
type pricer struct {
	rc    []int64  // by offer: sum less the multipliers of its units
	sub   []priced // by seller
	cover []int64  // by unit: how many picks cover it
	picks []int
	taken []bool // by unit, inside one seller's problem

	heads  []head
	suffix []int64
	now    []int
	best   []int
	least  int64
	nodes  int
}

// priced is the least sum of one seller's picks: exact, or the bound that stands
// for it; loose is that without what excludes across cliques.
type priced struct{ exact, loose int64 }

// head is a clique's offers of negative reduced sum, the least first.
type head struct{ offers []int }

// evaluated is a Lagrangian bound and how far its picks miss a cover.
type evaluated struct {
	bound int64
	miss  int64 // squared
	whole bool  // every seller's problem was solved exactly
}

func (p *pricer) grow(m *model) {
	p.rc = make([]int64, len(m.offers))
	p.sub = make([]priced, len(m.sellers))
	p.cover = make([]int64, len(m.open))
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
	p.heads = p.heads[:0]
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
			loose += least
			p.picks = append(p.picks, pick)
			p.heads = append(p.heads, head{offers: clique})
		}
	}
	p.sub[k] = priced{loose, loose}
	if sl.simple || len(p.picks)-at < 2 || s.compatible(p.picks[at:]) {
		return true
	}
	return s.branchPrice(k, at)
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

// branchPrice solves a seller's problem whose cheapest picks exclude each other.
func (s *search) branchPrice(k, at int) bool {
	p := &s.prices
	for i := range p.heads {
		p.heads[i].offers = s.negatives(p.heads[i].offers)
	}
	slices.SortStableFunc(p.heads, func(x, y head) int {
		return cmp.Compare(p.rc[x.offers[0]], p.rc[y.offers[0]])
	})
	p.suffix = append(p.suffix[:0], make([]int64, len(p.heads)+1)...)
	for i := len(p.heads) - 1; i >= 0; i-- {
		p.suffix[i] = p.suffix[i+1] + p.rc[p.heads[i].offers[0]]
	}
	p.now, p.best, p.least, p.nodes = p.now[:0], p.best[:0], 0, 0
	s.branch(0, 0)
	s.purse.steps += p.nodes
	p.picks = append(p.picks[:at], p.best...)
	if p.nodes > pricingNodes {
		return false
	}
	p.sub[k].exact = p.least
	return true
}

func (s *search) negatives(clique []int) []int {
	rc := s.prices.rc
	var neg []int
	for _, b := range clique {
		if s.live[b] && rc[b] < 0 {
			neg = append(neg, b)
		}
	}
	slices.SortStableFunc(neg, func(x, y int) int { return cmp.Compare(rc[x], rc[y]) })
	return neg
}

// branch tries each offer of the i-th head, and none.
func (s *search) branch(i int, sum int64) {
	p := &s.prices
	if p.nodes++; p.nodes > pricingNodes {
		return
	}
	if sum < p.least {
		p.least, p.best = sum, append(p.best[:0], p.now...)
	}
	if i == len(p.heads) || sum+p.suffix[i] >= p.least {
		return
	}
	for _, b := range p.heads[i].offers {
		if sum+p.rc[b]+p.suffix[i+1] >= p.least {
			break
		}
		if !s.pickFits(b) {
			continue
		}
		s.pick(b)
		p.now = append(p.now, b)
		s.branch(i+1, sum+p.rc[b])
		p.now = p.now[:len(p.now)-1]
		s.unpick(b)
	}
	s.branch(i+1, sum)
}

// adopt takes the picks as a set if they are one; it reports whether they
// prove the level optimal below this node.
func (s *search) adopt(e evaluated) bool {
	if !e.whole {
		return false
	}
	mark, n := len(s.trail), 0
	picks := slices.Clone(s.prices.picks)
	for _, b := range picks {
		s.take(b)
		n++
	}
	if s.open == 0 {
		s.record()
	}
	for i := n - 1; i >= 0; i-- {
		s.undo(picks[i], len(s.trail))
	}
	s.undo(-1, mark)
	return true
}

package clearing

// WithTree is p, to be solved by trees over relaxations from the first step on.
func WithTree(p Problem) Problem {
	p.first = 1
	return p
}

// Priced is the solution of one seller's problem by the solver, and by trying everything.
type Priced struct {
	Bound int64 // the solver's; exact when Exact
	Exact bool
	Least int64
}

// PriceAll solves the problem of each seller of p several times, with new multipliers
// each time, within so many nodes.
func PriceAll(p Problem, nodes, times int, multiplier func(unit int) int64) []Priced {
	m := newModel(&p)
	m = m.part(m.all())
	s := newSearch(m, m.all(), &purse{limit: 1 << 40})
	s.prices.pack.limit = nodes
	var all []Priced
	for range times {
		for u := range s.prices.multi[cost] {
			s.prices.multi[cost][u] = multiplier(u) << m.shift[cost]
		}
		for k := range m.sellers {
			exact := s.prices.price(cost, k)
			all = append(all, Priced{s.prices.sub[k].exact, exact, s.leastOf(k, 0, 0)})
		}
	}
	return all
}

// leastOf tries every set of seller k's offers from the i-th on, within the rows that
// bids name.
func (s *search) leastOf(k, i int, sum int64) int64 {
	offers := s.cover.m.sellers[k].offers
	if i == len(offers) {
		return sum
	}
	least := s.leastOf(k, i+1, sum)
	b := offers[i]
	o := &s.cover.m.offers[b]
	if !s.cover.live[b] { // its group is taken
		return least
	}
	for _, u := range o.units {
		if s.prices.pack.taken[u] {
			return least
		}
	}
	for _, u := range o.uses {
		if !s.cover.m.cut[u.row] && u.cores > s.cover.capacity[u.row] {
			return least
		}
	}
	return min(least, s.leastWith(k, i, sum))
}

func (s *search) leastWith(k, i int, sum int64) int64 {
	b := s.cover.m.sellers[k].offers[i]
	var killed []int
	for _, c := range s.cover.m.sellers[k].offers[i+1:] {
		if g := s.cover.m.offers[b].group; g >= 0 && s.cover.m.offers[c].group == g && s.cover.live[c] {
			s.cover.live[c] = false
			killed = append(killed, c)
		}
	}
	s.prices.pack.pick(b)
	least := s.leastOf(k, i+1, sum+s.prices.reduced(cost, b))
	s.prices.pack.unpick(b)
	for _, c := range killed {
		s.cover.live[c] = true
	}
	return least
}

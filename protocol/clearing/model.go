package clearing

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"ramp/protocol"
)

// level is one of the sums by which sets are compared.
type level int

const (
	violations level = 0
	excess     level = 1
	cost       level = 2
	nothing    level = 3 // zero for every offer: its bound only shows whether a set exists
	levels           = 4
)

const scaledBits = 40

// offer is a bid with dense numbers. Its index is its rank by compareBids.
type offer struct {
	bid    *Bid
	units  []int
	seller int
	group  int // index into model.groups; -1: none
	clique int // index into seller.cliques
	end    int // index into model.ends
	sums   [levels]int64
	uses   []use
}

// use is how many cores an offer takes from a row.
type use struct {
	row   int
	cores int64
}

// seller has offers of one seller, in a part only those that depend on each other
// (relatives). It groups them into cliques. At most one offer of a clique can be bought,
// because they share a group or their first unit.
type seller struct {
	offers  []int
	cliques [][]int
	rows    bool // some offer uses a row
	simple  bool // offers of different cliques never exclude each other
}

// model is a Problem in dense numbers, without offers that cannot be bought and units
// that a fixed bid covers.
type model struct {
	offers   []offer
	byUnit   [][]int
	sellers  []seller
	groups   [][]int
	capacity []int64     // by row: cores of one seller at one instant, less the fixed
	cut      []bool      // by row: follows from another row
	ends     []time.Time // distinct finishes in order
	open     []int       // unit in the problem, by unit here
	work     int         // steps that making the rows took
	shift    [levels]int // how far the sums of a level are shifted left
}

// newModel keeps the bids that fit beside the fixed ones.
func newModel(p *Problem) *model {
	m := &model{}
	number := m.openUnits(p)
	taken := map[groupKey]bool{}
	for i := range p.Fixed {
		taken[keyOf(&p.Fixed[i])] = true
	}
	bids := make([]*Bid, 0, len(p.Bids))
	for i := range p.Bids {
		b := &p.Bids[i]
		if p.eligible(b) && !slices.ContainsFunc(b.Offer.Items, func(it protocol.Item) bool { return number[it.Unit] < 0 }) && (b.Offer.Group == "" || !taken[keyOf(b)]) {
			bids = append(bids, b)
		}
	}
	slices.SortFunc(bids, compareBids)
	m.addOffers(p, bids, number)
	m.dropDominated()
	return m
}

// groupKey names an exclusive group within its seller.
type groupKey struct {
	seller protocol.AgentID
	group  string
}

func keyOf(b *Bid) groupKey { return groupKey{b.Seller, b.Offer.Group} }

// openUnits numbers the units that no fixed bid covers, and the others -1.
func (m *model) openUnits(p *Problem) []int {
	number := make([]int, p.Units)
	for i := range p.Fixed {
		for _, it := range p.Fixed[i].Offer.Items {
			number[it.Unit] = -1
		}
	}
	for u, n := range number {
		if n == 0 {
			number[u] = len(m.open)
			m.open = append(m.open, u)
		}
	}
	return number
}

// addOffers makes the offers, without those that exceed their seller's capacity.
func (m *model) addOffers(p *Problem, bids []*Bid, number []int) {
	plan := m.planRows(p, bids)
	sellers, groups := map[protocol.AgentID]int{}, map[groupKey]int{}
	for i, b := range bids {
		if plan.dropped[i] {
			continue
		}
		o := offer{bid: b, group: -1, uses: plan.uses[i]}
		for _, it := range b.Offer.Items {
			o.units = append(o.units, number[it.Unit])
		}
		o.seller = index(sellers, b.Seller)
		if b.Offer.Group != "" {
			o.group = index(groups, keyOf(b))
		}
		o.sums = [levels]int64{int64(b.Violations), int64(b.Excess), int64(b.Offer.Cost), 0}
		m.offers = append(m.offers, o)
	}
	m.scale()
	m.sellers = make([]seller, len(sellers))
	m.groups = make([][]int, len(groups))
	m.addEnds()
	m.addIndexes()
}

// scale shifts the sums of each level left until the largest has scaledBits, to give
// the integer multipliers enough precision.
func (m *model) scale() {
	var most [levels]uint64
	for i := range m.offers {
		for l, n := range m.offers[i].sums {
			most[l] |= uint64(n)
		}
	}
	for l := range most {
		m.shift[l] = max(scaledBits-bits.Len64(most[l]), 0)
	}
	for i := range m.offers {
		for l := range m.shift {
			m.offers[i].sums[l] <<= m.shift[l]
		}
	}
}

func index[K comparable](m map[K]int, k K) int {
	i, ok := m[k]
	if !ok {
		i = len(m)
		m[k] = i
	}
	return i
}

func (m *model) addEnds() {
	ends := make([]time.Time, len(m.offers))
	for i := range m.offers {
		ends[i] = finish(m.offers[i].bid)
	}
	all := slices.Clone(ends)
	slices.SortFunc(all, time.Time.Compare)
	m.ends = slices.CompactFunc(all, time.Time.Equal)
	for i := range m.offers {
		m.offers[i].end, _ = slices.BinarySearchFunc(m.ends, ends[i], time.Time.Compare)
	}
}

func (m *model) addIndexes() {
	m.byUnit = make([][]int, len(m.open))
	for i := range m.offers {
		o := &m.offers[i]
		for _, u := range o.units {
			m.byUnit[u] = append(m.byUnit[u], i)
		}
		if o.group >= 0 {
			m.groups[o.group] = append(m.groups[o.group], i)
		}
		s := &m.sellers[o.seller]
		s.offers = append(s.offers, i)
		s.rows = s.rows || len(o.uses) > 0
	}
}

// addCliques divides each seller's offers by group, or else by first unit.
func (m *model) addCliques() {
	for i := range m.sellers {
		s := &m.sellers[i]
		parts := map[[2]int]int{}
		owner := map[int]int{} // clique by unit
		s.cliques, s.simple = nil, !s.rows
		for _, b := range s.offers {
			o := &m.offers[b]
			key := [2]int{0, o.group}
			if o.group < 0 {
				key = [2]int{1, slices.Min(o.units)}
			}
			o.clique = index(parts, key)
			if o.clique == len(s.cliques) {
				s.cliques = append(s.cliques, nil)
			}
			s.cliques[o.clique] = append(s.cliques[o.clique], b)
			for _, u := range o.units {
				if c, ok := owner[u]; ok && c != o.clique {
					s.simple = false
				}
				owner[u] = o.clique
			}
		}
	}
}

// maxFront bounds how many free offers of a unit dominate others.
const maxFront = 32

// dropDominated drops each offer of one unit that a free offer of the same unit beats
// in everything. A free offer excludes only other offers of its unit, so it can
// replace the beaten one in any set.
func (m *model) dropDominated() {
	dropped := make([]bool, len(m.offers))
	for _, offers := range m.byUnit {
		var front []int
		for _, b := range m.byCost(offers) {
			o := &m.offers[b]
			if len(o.units) > 1 {
				continue
			}
			if slices.ContainsFunc(front, func(f int) bool { return m.beats(f, b) }) {
				dropped[b] = true
			} else if len(front) < maxFront && m.free(o) {
				front = append(front, b)
			}
		}
	}
	m.compact(dropped)
}

// byCost sorts a copy, so that the offers that beat another come before it.
func (m *model) byCost(offers []int) []int {
	offers = slices.Clone(offers)
	slices.SortStableFunc(offers, func(x, y int) int {
		return cmp.Or(cmp.Compare(m.offers[x].sums[cost], m.offers[y].sums[cost]), cmp.Compare(x, y))
	})
	return offers
}

func (m *model) beats(f, b int) bool {
	x, y := &m.offers[f], &m.offers[b]
	for l := range x.sums {
		if x.sums[l] > y.sums[l] {
			return false
		}
	}
	return x.end <= y.end && (f < b || x.sums != y.sums)
}

func (m *model) free(o *offer) bool {
	if len(o.uses) > 0 || o.group < 0 {
		return len(o.uses) == 0
	}
	return !slices.ContainsFunc(m.groups[o.group], func(b int) bool {
		return len(m.offers[b].units) > 1 || m.offers[b].units[0] != o.units[0]
	})
}

// compact renumbers the offers without the dropped ones, in the same order.
func (m *model) compact(dropped []bool) {
	rest := m.offers[:0]
	for i := range m.offers {
		if !dropped[i] {
			rest = append(rest, m.offers[i])
		}
	}
	m.offers = rest
	clear(m.groups)
	clear(m.sellers)
	m.addIndexes()
}

package clearing

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"ramp/protocol/clearing/lp"
)

// Bounds of the relaxation.
const (
	lpBits     = 10               // its costs are below 2^lpBits, for the simplex's tolerances
	mostPrice  = 1 << 46          // of a unit or group, or of a row's cores
	mostLPSize = 1 << 21          // entries, and
	mostLPRows = 1 << 12          // rows; a larger relaxation is not tried
	lpWork     = 7                // entries touched in a step of search
	sumBits    = 20               // limits on other levels are below 2^sumBits
	integral   = 1e-6             // a value nearer to a whole number counts as whole
	rayScale   = float64(1 << 44) // largest price of a ray
)

// relaxation is the linear programme of a part at one level: every unit is covered once, of a
// group or clique at most one offer is taken, and neither rows nor the limits on other levels are
// exceeded, but offers may be taken in part. The simplex only guides. The function exact proves
// its result: its prices, rounded to integers, bound every set.
type relaxation struct {
	cover *cover
	purse *purse
	level level
	p     *lp.Problem
	s     *lp.Simplex
	shift int   // from the sums to the costs of the programme
	group []int // by group: its row in the programme; -1: none
	cores int   // the first row of the programme that bounds cores, or sums of other levels

	limit    [levels]int64 // on other levels; unlimited: none, or all sets are equal there
	capacity []int64       // of the model's rows, and then these limits
	parts    [][]use       // by offer: its rows in the programme, those of cliques last
	sums     []int64       // by offer, at the level
	none     []int64       // by offer, zero
	cliques  int           // the first row of a clique
	excluded []*big.Int    // by offer; nil: not known yet
	age      int           // how often cliques were dropped

	y     []float64
	price []int64 // by row of the programme
	rc    []int64 // by offer
	x     []float64
	on    []bool // by offer: it can be part of a set, or is
	spent int    // of the simplex's work
}

// newRelaxation makes the programme at l within limits on other levels, or nil if it is too large.
func newRelaxation(cv *cover, purse *purse, l level, limit [levels]int64) *relaxation {
	m := cv.m
	r := &relaxation{
		cover: cv, purse: purse, level: l, limit: limit, group: make([]int, len(m.groups)),
		parts: make([][]use, len(m.offers)), none: make([]int64, len(m.offers)), rc: make([]int64, len(m.offers)), x: make([]float64, len(m.offers)), on: make([]bool, len(m.offers)),
	}
	uses := r.addRows()
	p := &lp.Problem{Equal: append([]bool(nil), cv.need...)}
	for g, list := range m.groups {
		r.group[g] = -1
		if len(list) > 1 {
			r.group[g] = len(p.Equal)
			p.Equal = append(p.Equal, false)
		}
	}
	r.cores = len(p.Equal)
	p.Equal = append(p.Equal, make([]bool, len(r.capacity))...)
	var most uint64
	size := 0
	for i := range m.offers {
		most |= uint64(m.offers[i].sums[l])
		r.sums = append(r.sums, m.offers[i].sums[l])
		p.Columns = append(p.Columns, r.column(i, uses[i]))
		size += len(p.Columns[i])
	}
	if size > mostLPSize || len(p.Equal) > mostLPRows {
		return nil
	}
	r.shift = max(bits.Len64(most)-lpBits, 0)
	for _, sum := range r.sums {
		p.Costs = append(p.Costs, math.Ldexp(float64(sum), -r.shift))
	}
	for range p.Equal {
		p.Right = append(p.Right, 1)
	}
	r.p = p
	r.begin(nil)
	r.cliques = len(p.Right)
	return r
}

func (r *relaxation) begin(basis *lp.Basis) {
	rows := len(r.p.Right)
	r.y, r.price = make([]float64, rows), make([]int64, rows)
	r.s, r.spent = lp.New(r.p, r.s, r.cliques), 0
	if basis != nil {
		r.s.Return(basis)
	}
	r.purse.steps += 4 * (rows + len(r.p.Columns))
	for _, c := range r.p.Columns {
		r.purse.steps += len(c)
	}
}

// addRows makes a row of each limit, and returns the rows that each offer uses. Numbers of rows
// and offers are rounded down: sums within the limit stay within it, and prices of such numbers
// can be whole. An offer above the limit cannot be taken, however far above it is.
func (r *relaxation) addRows() (uses [][]use) {
	m := r.cover.m
	r.capacity = slices.Clone(m.capacity)
	for i := range m.offers {
		uses = append(uses, slices.Clip(m.offers[i].uses))
	}
	for l, limit := range r.limit {
		if limit <= 0 || limit == unlimited {
			continue // the search sees to it
		}
		shift := max(bits.Len64(uint64(limit))-sumBits, 0)
		for i := range m.offers {
			if n := m.offers[i].sums[l] >> shift; n > 0 {
				uses[i] = append(uses[i], use{len(r.capacity), min(n, limit>>shift+1)})
			}
		}
		r.capacity = append(r.capacity, limit>>shift)
	}
	return uses
}

func (r *relaxation) column(b int, uses []use) []lp.Entry {
	o := &r.cover.m.offers[b]
	for _, u := range o.units {
		r.parts[b] = append(r.parts[b], use{u, 1})
	}
	if o.group >= 0 && r.group[o.group] >= 0 {
		r.parts[b] = append(r.parts[b], use{r.group[o.group], 1})
	}
	var c []lp.Entry
	for _, u := range r.parts[b] {
		c = append(c, lp.Entry{Row: u.row, Value: 1})
	}
	for _, u := range uses {
		r.parts[b] = append(r.parts[b], use{r.cores + u.row, u.cores})
		c = append(c, lp.Entry{Row: r.cores + u.row, Value: float64(u.cores) / float64(r.capacity[u.row])})
	}
	return c
}

// sync tells the simplex which offers can be part of a set here.
func (r *relaxation) sync() {
	copy(r.on, r.cover.live)
	for _, b := range r.cover.by {
		if b >= 0 {
			r.on[b] = true
		}
	}
	for b, on := range r.on {
		r.s.Switch(b, on)
	}
	r.purse.steps += len(r.on) / 2
}

// solve solves the relaxation at this node, within so much work, and returns a proved bound
// on the sum of any set. limit is the largest sum of interest.
func (r *relaxation) solve(limit int64, work int) (lp.Outcome, int64) {
	r.sync()
	cutoff := math.Inf(1)
	if limit < unlimited {
		cutoff = math.Ldexp(float64(limit), -r.shift)
		cutoff += float64(1e-7 * (1 + cutoff))
	}
	left := max(r.purse.limit-r.purse.steps, 0)
	outcome := r.s.Solve(cutoff, r.s.Work+min(work, left*lpWork))
	bound := int64(math.MinInt64)
	switch {
	case outcome == lp.Infeasible && r.refuted():
		bound = unlimited
	case outcome != lp.Failed:
		r.s.Duals(r.y)
		bound = r.exact(r.sums)
	}
	if outcome == lp.Optimal {
		r.s.Values(r.x)
		r.purse.steps += len(r.x) / 4
	}
	r.purse.steps += (r.s.Work - r.spent) / lpWork
	r.spent = r.s.Work
	return outcome, bound
}

// refuted reports whether the ray proves that there is no set here, whatever offers cost.
func (r *relaxation) refuted() bool {
	r.s.Ray(r.y)
	largest := 0.0
	for _, v := range r.y {
		largest = max(largest, math.Abs(v))
	}
	for i := range r.y {
		r.y[i] *= math.Ldexp(rayScale/max(largest, integral), -r.shift)
	}
	return r.exact(r.none) > 0
}

// exact is the bound that the prices in y prove once they are rounded: whatever they are, a
// set costs at least the price of its units, plus what its offers cost beyond the prices of
// their units, groups and cores. It fills rc with that.
func (r *relaxation) exact(sums []int64) int64 {
	m := r.cover.m
	var bound int64
	for i, v := range r.y {
		whole := int64(max(min(math.Ldexp(v, r.shift), mostPrice), -mostPrice))
		if i >= len(m.open) || !r.cover.need[i] {
			whole = min(whole, 0)
		}
		r.price[i] = whole
		if i >= r.cores && i < r.cliques {
			c := r.capacity[i-r.cores]
			r.price[i] = whole / c
			whole = r.price[i] * c
		}
		bound += whole
	}
	for b := range r.rc {
		if !r.on[b] {
			continue
		}
		rc := sums[b]
		for _, u := range r.parts[b] {
			rc -= u.cores * r.price[u.row]
		}
		r.purse.steps += len(r.parts[b]) / 4
		if r.rc[b] = rc; rc < 0 || !r.cover.live[b] { // or it is taken
			bound += rc
		}
		if bound < leastBound {
			return math.MinInt64
		}
	}
	r.purse.steps += len(r.rc)
	return bound
}

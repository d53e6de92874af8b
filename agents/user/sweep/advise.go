package sweep

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
	"time"

	"ramp/protocol"
)

// Resource is what a planner knows of a resource.
type Resource struct {
	Name  string
	Lanes []time.Duration  // when each of its processors (or sets of cores that run a task) is free
	Until time.Duration    // no task may end later here; the deadline if that is earlier
	Price protocol.Credits // of a lane for an hour
	// A lane does Work in Time. A task has a size in the same unit as Work: millions of
	// instructions where lengths are known, 1 where all that is known is how long tasks took.
	Work int64
	Time time.Duration
}

// Problem is what remains to be planned. All times are since the sweep began.
type Problem struct {
	Strategy  Strategy
	Now       time.Duration
	Deadline  time.Duration
	Money     protocol.Credits // neither spent nor committed
	Equal     int              // costs that differ by at most so many parts of 10,000 form one group of CostTime
	Sizes     []int64          // of the unassigned tasks, in their order; positive
	Resources []Resource
}

// Plan says where each task goes.
type Plan struct {
	Tasks  [][]int // for each resource: indexes of its tasks, in the order in which they begin
	Left   []int   // tasks that fit nowhere
	Cost   protocol.Credits
	Finish time.Duration // of the last task; the zero value if none was assigned
}

// never is later than any deadline; unaffordable is dearer than any budget.
const (
	never        time.Duration    = math.MaxInt64
	unaffordable protocol.Credits = math.MaxInt64
)

// Advise assigns tasks to resources. No task ends after the deadline, and their costs together
// are at most Money.
func Advise(p Problem) Plan {
	a := newAdvice(p)
	switch p.Strategy {
	case Cost, CostTime:
		a.cheapest()
	case Time:
		a.soonest()
	case ConservativeTime:
		a.inProportion()
	case None:
		a.roundRobin()
	}
	return a.plan
}

// Dearest assigns tasks to the dearest resources first: what they cost at most by the deadline (004,
// section 4).
func Dearest(p Problem) Plan {
	p.Strategy = Cost
	a := newAdvice(p)
	slices.Reverse(a.places)
	a.cheapest()
	return a.plan
}

func newAdvice(p Problem) *advice {
	a := &advice{Problem: p, plan: Plan{Tasks: make([][]int, len(p.Resources))}}
	for i := range p.Resources {
		a.places = append(a.places, newPlace(&p, i))
	}
	slices.SortStableFunc(a.places, compare)
	return a
}

type advice struct {
	Problem
	places []*place // in order of cost, the stronger first
	plan   Plan
}

// place is a resource while it is filled.
type place struct {
	*Resource
	index int
	lanes lanes
	until time.Duration
	full  int64 // a task of this size ends too late, and so does any larger one
}

// lanes is a heap of the times at which lanes are free.
type lanes []time.Duration

func (l lanes) Len() int           { return len(l) }
func (l lanes) Less(i, j int) bool { return l[i] < l[j] }
func (l lanes) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lanes) Push(any)          { panic("a resource has as many lanes as it has") }
func (l *lanes) Pop() any          { panic("a resource has as many lanes as it has") }

func newPlace(p *Problem, i int) *place {
	r := &p.Resources[i]
	l := make(lanes, len(r.Lanes))
	for j, free := range r.Lanes {
		l[j] = max(free, p.Now)
	}
	heap.Init(&l)
	x := &place{Resource: r, index: i, lanes: l, until: min(r.Until, p.Deadline), full: math.MaxInt64}
	if len(l) == 0 {
		x.full = 0
	}
	return x
}

// takes is the time that a task takes on a lane, rounded up.
func (r *Resource) takes(size int64) time.Duration {
	hi, lo := bits.Mul64(uint64(size), uint64(r.Time))
	lo, carry := bits.Add64(lo, uint64(r.Work)-1, 0)
	if hi += carry; hi >= uint64(r.Work) {
		return never
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Work))
	return time.Duration(min(q, math.MaxInt64))
}

// Costs is the cost of a task, and the time that it takes.
func (r *Resource) Costs(size int64) (protocol.Credits, time.Duration) {
	d := r.takes(size)
	c, err := protocol.Cost(r.Price, 1, d)
	if err != nil {
		return unaffordable, d
	}
	return c, d
}

// ends is when a task would end here, or never.
func (x *place) ends(size int64) time.Duration {
	if size >= x.full {
		return never
	}
	if d := x.takes(size); d <= x.until-x.lanes[0] {
		return x.lanes[0] + d
	}
	x.full = size
	return never
}

// assign puts a task on the lane that is free first.
func (a *advice) assign(x *place, task int) {
	cost, d := x.Costs(a.Sizes[task])
	x.lanes[0] += d
	a.plan.Finish = max(a.plan.Finish, x.lanes[0])
	heap.Fix(&x.lanes, 0)
	a.plan.Tasks[x.index] = append(a.plan.Tasks[x.index], task)
	a.plan.Cost += cost
	a.Money -= cost
}

// compare orders by cost per work, then by strength.
func compare(x, y *place) int {
	return cmp.Or(
		product(uint64(x.Price), uint64(x.Time), uint64(y.Work)).compare(product(uint64(y.Price), uint64(y.Time), uint64(x.Work))),
		product(uint64(len(y.Lanes)), uint64(y.Work), uint64(x.Time)).compare(product(uint64(len(x.Lanes)), uint64(x.Work), uint64(y.Time))),
	)
}

// wide is a product of three factors, from high to low.
type wide [3]uint64

func product(a, b, c uint64) wide {
	hi, lo := bits.Mul64(a, b)
	top, mid := bits.Mul64(hi, c)
	carried, low := bits.Mul64(lo, c)
	mid, carry := bits.Add64(mid, carried, 0)
	return wide{top + carry, mid, low}
}

func (w wide) compare(v wide) int { return slices.Compare(w[:], v[:]) }

// groups are ranges of places: of equal cost for CostTime, of one place each for Cost.
func (a *advice) groups() [][]*place {
	var out [][]*place
	for i := 0; i < len(a.places); {
		j := i + 1
		for a.Strategy == CostTime && j < len(a.places) && a.equal(a.places[i], a.places[j]) {
			j++
		}
		out = append(out, a.places[i:j])
		i = j
	}
	return out
}

// equal says whether the dearer of two places belongs to the group of the cheaper one.
func (a *advice) equal(cheap, dear *place) bool {
	const whole = 10_000
	x := product(uint64(cheap.Price), uint64(cheap.Time), uint64(dear.Work)).times(uint64(whole + a.Equal))
	y := product(uint64(dear.Price), uint64(dear.Time), uint64(cheap.Work)).times(whole)
	return slices.Compare(y[:], x[:]) <= 0
}

// times is a product of four factors, from high to low.
func (w wide) times(f uint64) [4]uint64 {
	c2, r2 := bits.Mul64(w[2], f)
	c1, r1 := bits.Mul64(w[1], f)
	c0, r0 := bits.Mul64(w[0], f)
	r1, carry := bits.Add64(r1, c2, 0)
	r0, carry = bits.Add64(r0, c1, carry)
	return [4]uint64{c0 + carry, r0, r1, r2}
}

// cheapest fills groups in order of cost.
func (a *advice) cheapest() {
	groups := a.groups()
	for task := range a.Sizes {
		for len(groups) > 0 && !slices.ContainsFunc(groups[0], func(x *place) bool { return x.full > 1 }) {
			groups = groups[1:]
		}
		if !slices.ContainsFunc(groups, func(g []*place) bool { return a.assigned(task, g, a.Money) }) {
			a.plan.Left = append(a.plan.Left, task)
		}
	}
}

// soonestOf is the place where a task ends first at a cost of at most limit; nil: nowhere.
func (a *advice) soonestOf(places []*place, size int64, limit protocol.Credits) *place {
	var best *place
	end := never
	for _, x := range places {
		if e := x.ends(size); e < end {
			if c, _ := x.Costs(size); c <= limit {
				best, end = x, e
			}
		}
	}
	return best
}

// least is the lowest cost of a task among the places where it ends in time.
func (a *advice) least(size int64) protocol.Credits {
	least := unaffordable
	for _, x := range a.places {
		if x.ends(size) < never {
			c, _ := x.Costs(size)
			least = min(least, c)
		}
	}
	return least
}

// soonest sends each task to where it ends first, at no more than an equal share of the money, or
// to the cheapest that is in time where that share is too small.
func (a *advice) soonest() {
	for task, size := range a.Sizes {
		share := a.Money / protocol.Credits(len(a.Sizes)-task)
		if !a.assigned(task, a.places, min(max(share, a.least(size)), a.Money)) {
			a.plan.Left = append(a.plan.Left, task)
		}
	}
}

// inProportion keeps an equal share of the money for every task: a resource is used if a task of mean
// size costs no more than that there. Lanes take turns as they become free, so resources get tasks in
// proportion to their rates. Tasks that would be late are assigned again with the money left over,
// and at last to the cheapest resource that is in time.
func (a *advice) inProportion() {
	left := make([]int, len(a.Sizes))
	for i := range left {
		left[i] = i
	}
	for before := -1; len(left) > 0 && len(left) != before; {
		before = len(left)
		share, usual := a.Money/protocol.Credits(len(left)), a.meanSize(left)
		usable := slices.DeleteFunc(slices.Clone(a.places), func(x *place) bool {
			c, _ := x.Costs(usual)
			return c > share
		})
		left = slices.DeleteFunc(left, func(task int) bool {
			return a.assigned(task, usable, a.Money)
		})
	}
	for _, task := range left {
		if !a.assigned(task, a.places, min(a.Money, a.least(a.Sizes[task]))) {
			a.plan.Left = append(a.plan.Left, task)
		}
	}
}

// assigned assigns a task to where it ends first at a cost of at most limit; false: nowhere.
func (a *advice) assigned(task int, places []*place, limit protocol.Credits) bool {
	x := a.soonestOf(places, a.Sizes[task], limit)
	if x != nil {
		a.assign(x, task)
	}
	return x != nil
}

func (a *advice) meanSize(tasks []int) int64 {
	var mean, rest int64 // of sums that need not fit
	n := int64(len(tasks))
	for _, t := range tasks {
		mean, rest = mean+a.Sizes[t]/n, rest+a.Sizes[t]%n
	}
	return mean + rest/n
}

// roundRobin sends each task to the place that is free first, in turns where several are.
func (a *advice) roundRobin() {
	slices.SortFunc(a.places, func(x, y *place) int { return cmp.Compare(x.index, y.index) })
	turn := 0
	for task, size := range a.Sizes {
		var best *place
		next := 0
		for i := range a.places {
			x := a.places[(turn+i)%len(a.places)]
			if x.ends(size) == never || best != nil && x.lanes[0] >= best.lanes[0] {
				continue
			}
			if c, _ := x.Costs(size); c <= a.Money {
				best, next = x, (turn+i+1)%len(a.places)
			}
		}
		if best == nil {
			a.plan.Left = append(a.plan.Left, task)
			continue
		}
		turn = next
		a.assign(best, task)
	}
}

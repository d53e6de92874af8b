package workload

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// View is the recorded load of a log without sales: the oracle's view (specs §1.3).
// Its answers take microseconds for logs of any size.
type View struct {
	capacity int
	times    []int64 // instants at which the load changes, in order
	busy     []int   // cores busy from times[i] on
	work     []int64 // core-seconds before times[i]
	most     []int   // a heap-shaped tree over busy: most[i] = max of its two children
}

// NewView sorts a log's starts and ends.
func NewView(l *Log) *View {
	type edge struct {
		at    int64
		cores int
	}
	var edges []edge
	capacity := l.Capacity()
	for b := range l.Bursts() {
		edges = append(edges, edge{b.Start, b.Cores}, edge{b.End, -b.Cores})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	v := &View{capacity: capacity}
	busy, work := 0, int64(0)
	for _, e := range edges {
		n := len(v.times)
		if n == 0 || v.times[n-1] != e.at {
			if n > 0 {
				work += int64(busy) * (e.at - v.times[n-1])
			}
			v.times, v.busy, v.work = append(v.times, e.at), append(v.busy, 0), append(v.work, work)
		}
		busy += e.cores
		v.busy[len(v.busy)-1] = busy
	}
	v.grow()
	return v
}

// grow builds the tree of maxima.
func (v *View) grow() {
	n := len(v.busy)
	v.most = make([]int, 2*n)
	copy(v.most[n:], v.busy)
	for i := n - 1; i > 0; i-- {
		v.most[i] = max(v.most[2*i], v.most[2*i+1])
	}
}

// Span is from the first start to the last end; zeros if no job ran.
func (v *View) Span() (start, end int64) {
	if len(v.times) == 0 {
		return 0, 0
	}
	return v.times[0], v.times[len(v.times)-1]
}

// at is the index of the last change not after t, or -1.
func (v *View) at(t int64) int {
	return sort.Search(len(v.times), func(i int) bool { return v.times[i] > t }) - 1
}

// Busy is Σ cores over the bursts with start ≤ t < end. It may exceed the capacity, as
// real logs sometimes do.
func (v *View) Busy(t int64) int {
	if i := v.at(t); i >= 0 {
		return v.busy[i]
	}
	return 0
}

// MostBusy is the largest Busy in [start, end); if end is not after start, at start.
func (v *View) MostBusy(start, end int64) int {
	most := v.Busy(start)
	n := len(v.busy)
	i, j := v.at(start)+1+n, v.at(end-1)+1+n
	for ; i < j; i, j = i/2, j/2 {
		if i%2 == 1 {
			most = max(most, v.most[i])
			i++
		}
		if j%2 == 1 {
			j--
			most = max(most, v.most[j])
		}
	}
	return most
}

// Work is the core-seconds used in [start, end).
func (v *View) Work(start, end int64) int64 {
	if end <= start {
		return 0
	}
	return v.before(end) - v.before(start)
}

func (v *View) before(t int64) int64 {
	i := v.at(t)
	if i < 0 {
		return 0
	}
	return v.work[i] + int64(v.busy[i])*(t-v.times[i])
}

// Load is the mean share of the machine that was busy in [start, end).
func (v *View) Load(start, end int64) float64 {
	if end <= start || v.capacity == 0 {
		return 0
	}
	return float64(v.Work(start, end)) / float64(v.capacity) / float64(end-start)
}

// FirstLoaded is the first instant t, not before the first start, with a mean
// load of at least share over [t, t+span). It finds the useful part of a log that begins
// with an idle machine (specs §1.4).
func (v *View) FirstLoaded(span int64, share float64) (int64, bool) {
	first, _ := v.Span()
	loaded := func(t int64) bool { return v.Load(t, t+span) >= share }
	for t := range v.bends(span) {
		if loaded(t) {
			// Between bends the work in the window is linear. So if no bend before t is
			// loaded nothing before the last of them is, and after it there is one crossing.
			return first + int64(sort.Search(int(t-first), func(d int) bool { return loaded(first + int64(d)) })), true
		}
	}
	return 0, false
}

// Week is the span in seconds over which FirstBusyWeek takes the mean.
const Week = int64(7 * 24 * 3600)

// FirstBusyWeek is the first second of a log from which on one week's mean load is at
// least share: the rule that shifts the base times of a log that begins late or idle
// (specs §1.4, with a share of 0.6). It is false for a log without such a week.
func FirstBusyWeek(l *Log, share float64) (int64, bool) { return NewView(l).FirstLoaded(Week, share) }

// bends yields, in order and not before the first change, the instants at which
// the window [t, t+span) begins or ends at a change of the load.
func (v *View) bends(span int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		first, _ := v.Span()
		i, j := 0, v.at(first+span)+1
		for i < len(v.times) {
			t := v.times[i]
			if j < len(v.times) && v.times[j]-span < t {
				t = v.times[j] - span
				j++
			} else {
				i++
			}
			if !yield(t) {
				return
			}
		}
	}
}

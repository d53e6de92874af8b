package forecast_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
)

// comparison is the result of the same asks under two views.
type comparison struct{ wallTime, optimistic sales }

// compareViews plays a log twice against the same n asks: hours of a 64th, a 16th and a
// quarter of the machine, in five minutes, an hour and twelve hours. They come at
// random instants after the first tenth of the log, in which a site only learns.
func compareViews(l *workload.Log, n int) comparison {
	first, last := arrivals(l)
	asks := drawAsks(first+(last-first)/10, last, n, kinds(l.Capacity()), rand.New(rand.NewPCG(1, 1)).Int64N)
	return comparison{wallTime: sell(l, asks, wallTime{}), optimistic: sell(l, asks, optimistic{forecast.UsualView()})}
}

// arrivals is when the first and the last job that ran were submitted.
func arrivals(l *workload.Log) (first, last int64) {
	first = workload.Forever
	for b := range l.Bursts() {
		first, last = min(first, b.Submit), max(last, b.Submit)
	}
	return min(first, last), last
}

func kinds(capacity int) []ask {
	var out []ask
	for _, ahead := range []int64{5 * 60, 3600, 12 * 3600} {
		for _, share := range []int{64, 16, 4} {
			out = append(out, ask{Start: ahead, Wall: 3600, Cores: max(1, capacity/share)})
		}
	}
	return out
}

// drawAsks draws n asks of random kinds at random instants of [from, to), in order of
// time. The start of a kind counts from the ask.
func drawAsks(from, to int64, n int, kinds []ask, draw func(n int64) int64) []ask {
	var asks []ask
	for range n {
		a := kinds[draw(int64(len(kinds)))]
		a.At = from + draw(max(to-from, 1))
		a.Start += a.At
		asks = append(asks, a)
	}
	slices.SortStableFunc(asks, func(a, b ask) int { return cmp.Compare(a.At, b.At) })
	return asks
}

// ask is a request to a site at second At of the log: cores over [Start, Start+Wall).
type ask struct {
	At    int64
	Start int64 // not before At
	Wall  int64 // seconds, 1..workload.MaxAhead
	Cores int
}

// sales counts the results of the asks.
type sales struct {
	Asked, Sold int
	Broken      int   // sold, but the cores were not free
	CoreSeconds int64 // of the slots that were sold and not broken
}

// sell plays a log as a site that gets the asks, in order of time. The site sells a
// slot if its view allows it, and the machine then keeps the cores from jobs that have
// not started. A promise is broken if, when the slot begins, the running jobs leave too
// few cores; of several slots the one sold last is broken first, and its cores are given
// back. The machine ends jobs beyond their requested time for a slot, as a batch system
// does, so the wall-time view breaks no promise. The machine starts empty, and its jobs
// start by EASY back-filling around the slots.
func sell(l *workload.Log, asks []ask, view view) sales {
	s := newSite(l, view)
	for i, a := range asks {
		s.serve(a.At)
		s.answer(i, a)
	}
	s.serve(workload.Forever)
	return s.sales
}

// view decides from the state of a batch system whether a site sells a slot.
type view interface {
	sells(s workload.Snapshot, o *observer, a ask) bool
}

// wallTime trusts the requested times.
type wallTime struct{}

func (wallTime) sells(s workload.Snapshot, _ *observer, a ask) bool { return free(s, a) }

// optimistic also sells what the Optimistic view allows.
type optimistic struct{ forecast.Optimistic }

func (v optimistic) sells(s workload.Snapshot, o *observer, a ask) bool {
	if free(s, a) {
		return true
	}
	return o.risk(s, a, v.Level.Confidence) <= v.Risk && free(o.learnt.Shorten(s, o.claim, v.Level), a)
}

func free(s workload.Snapshot, a ask) bool {
	return s.Project().Free(a.Start, a.Start+a.Wall) >= a.Cores
}

// site is the machine of a log that sells slots.
type site struct {
	machine *workload.Machine
	view    view
	watch   *observer
	sold    []workload.Reservation // that have not begun, by start
	sales   sales
}

// newSite is the machine, empty, before the first job arrives.
func newSite(l *workload.Log, view view) *site {
	plain, jobs := flatten(l)
	base := int64(0)
	if len(jobs) > 0 {
		base = jobs[0].Submit - 1
	}
	return &site{machine: workload.NewMachine(plain, base), view: view, watch: newObserver(jobs)}
}

// flatten is a copy of the log in which every burst is a job of its own, numbered
// by its place in the list of bursts, which is by submit time.
func flatten(l *workload.Log) (*workload.Log, []workload.Burst) {
	jobs := slices.SortedStableFunc(l.Bursts(), func(a, b workload.Burst) int { return cmp.Compare(a.Submit, b.Submit) })
	out := &workload.Log{Comments: []string{fmt.Sprintf(" MaxProcs: %d", l.Capacity())}}
	for i := range jobs {
		b := &jobs[i]
		b.Number = int32(i) // a log has at most MaxJobs
		out.Jobs = append(out.Jobs, workload.Job{
			Number: b.Number, Submit: b.Submit, Wait: int32(b.Start - b.Submit), Run: int32(b.End - b.Start),
			Procs: int32(b.Cores), RequestedTime: int32(b.Requested), Status: workload.StatusCompleted,
		})
	}
	return out, jobs
}

// serve plays the machine to an instant, and checks each slot as it begins.
func (s *site) serve(to int64) {
	for len(s.sold) > 0 && s.sold[0].Start <= to {
		s.machine.Advance(s.sold[0].Start)
		s.check()
	}
	if to != workload.Forever {
		s.machine.Advance(to)
	}
}

// check breaks slots that begin without enough cores. A slot that has begun is safe:
// later jobs start beside it.
func (s *site) check() {
	snap := s.machine.Snapshot()
	over := -snap.Capacity
	for _, r := range snap.Running {
		over += r.Cores
	}
	var active []workload.Reservation
	for _, r := range snap.Reservations {
		if r.Start <= snap.Now {
			over += r.Cores
			active = append(active, r)
		}
	}
	// Names are by order of selling: the slot that was sold last comes first.
	slices.SortFunc(active, func(a, b workload.Reservation) int { return cmp.Compare(b.ID, a.ID) })
	for len(active) > 0 && over > 0 {
		over -= active[0].Cores
		s.breaks(active[0])
		active = active[1:]
	}
	s.sold = slices.DeleteFunc(s.sold, func(r workload.Reservation) bool { return r.Start <= snap.Now })
}

func (s *site) breaks(r workload.Reservation) {
	s.machine.Release(r.ID)
	s.sales.Broken++
	s.sales.CoreSeconds -= int64(r.Cores) * (r.End - r.Start)
}

// answer sells the slot if the view says so.
func (s *site) answer(i int, a ask) {
	snap := s.machine.Snapshot()
	s.watch.look(snap)
	s.sales.Asked++
	if a.Cores > snap.Capacity || !s.view.sells(snap, s.watch, a) {
		return
	}
	r := workload.Reservation{ID: fmt.Sprintf("%08d", i), Start: a.Start, End: a.Start + a.Wall, Cores: a.Cores}
	if s.machine.Restore(r) != nil {
		return // more slots than a machine holds
	}
	at, _ := slices.BinarySearchFunc(s.sold, r.Start+1, func(x workload.Reservation, t int64) int { return cmp.Compare(x.Start, t) })
	s.sold = slices.Insert(s.sold, at, r)
	s.sales.Sold++
	s.sales.CoreSeconds += int64(a.Cores) * a.Wall
}

// observer learns run times like an agent that polls its batch system: it looks up how
// long a job ran once the job is neither running nor waiting.
type observer struct {
	learnt  forecast.Forecast
	jobs    []workload.Burst // by submit time; a job's number is its place
	arrived int              // of jobs, submitted so far
	open    []int32          // submitted and not known to have ended
	starts  map[int32]int64  // of the open ones that were seen running
}

func newObserver(jobs []workload.Burst) *observer {
	return &observer{jobs: jobs, starts: map[int32]int64{}}
}

// look takes a state of the batch system.
func (o *observer) look(s workload.Snapshot) {
	for ; o.arrived < len(o.jobs) && o.jobs[o.arrived].Submit <= s.Now; o.arrived++ {
		o.open = append(o.open, int32(o.arrived))
	}
	shown := make(map[int32]bool, len(s.Running)+len(s.Waiting))
	for _, r := range s.Running {
		shown[r.Number] = true
		if _, seen := o.starts[r.Number]; !seen {
			o.starts[r.Number] = r.End - o.jobs[r.Number].Requested
		}
	}
	for _, w := range s.Waiting {
		shown[w.Number] = true
	}
	o.settle(shown)
}

// settle learns from the jobs that are gone.
func (o *observer) settle(shown map[int32]bool) {
	kept := o.open[:0]
	for _, n := range o.open {
		if shown[n] {
			kept = append(kept, n)
			continue
		}
		j := o.jobs[n]
		o.learnt.Ended(j.Cores, j.Requested, j.End-j.Start)
		delete(o.starts, n)
	}
	o.open = kept
}

func (o *observer) claim(r workload.Running) forecast.Claim {
	return forecast.Claim{Cores: r.Cores, Start: o.starts[r.Number], Requested: o.jobs[r.Number].Requested}
}

// risk is the probability that the running jobs break the slot, beside all slots that
// are sold already.
func (o *observer) risk(s workload.Snapshot, a ask, confidence float64) float64 {
	room := s.Capacity - a.Cores
	for _, r := range s.Reservations {
		if r.Start < a.Start+a.Wall && a.Start < r.End {
			room -= r.Cores
		}
	}
	claims := make([]forecast.Claim, len(s.Running))
	for i, r := range s.Running {
		claims[i] = o.claim(r)
	}
	return o.learnt.Shortfall(claims, s.Now, a.Start, room, confidence)
}

package forecast

import (
	"cmp"
	"fmt"
	"slices"

	"ramp/agents/workload"
)

// site is a log's machine that sells.
type site struct {
	machine *workload.Machine
	view    View
	watch   *observer
	sold    []workload.Reservation // that have not begun, by start
	sales   Sales
	queued  int // jobs that waited, summed over the asks
}

// newSite is the machine, empty, before the first job arrives.
func newSite(l *workload.Log, view View) *site {
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

// serve plays the machine to an instant, and looks at each slot as it begins.
func (s *site) serve(to int64) {
	for len(s.sold) > 0 && s.sold[0].Start <= to {
		s.machine.Advance(s.sold[0].Start)
		s.check()
	}
	if to != workload.Forever {
		s.machine.Advance(to)
	}
}

// check breaks what cannot be kept of the slots that are under way. Once it has
// begun a slot is safe: what starts later starts beside it.
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
func (s *site) answer(i int, a Ask) {
	snap := s.machine.Snapshot()
	s.watch.look(snap)
	s.sales.Asked++
	s.queued += len(snap.Waiting)
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

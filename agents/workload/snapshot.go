package workload

import (
	"cmp"
	"slices"
)

// Running is a job that runs, as its batch system knows it.
type Running struct {
	Number int32 // the batch system's number of the job
	Cores  int
	End    int64 // estimated: start + requested time
}

// Waiting is a job that waits, as its batch system knows it.
type Waiting struct {
	Number int32
	Cores  int
	Wall   int64 // requested time, seconds
}

// Snapshot is what a batch system knows at an instant.
type Snapshot struct {
	Now          int64
	Capacity     int
	Running      []Running     // by end, then number
	Waiting      []Waiting     // in order of the queue
	Reservations []Reservation // by start, then ID; those that are not over
}

// Snapshot is what the machine's scheduler knows now. It does not know how long
// jobs will really run.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{Now: m.s.now, Capacity: m.s.capacity, Reservations: slices.Clone(m.sold)}
	for _, r := range m.s.running {
		s.Running = append(s.Running, Running{r.number, r.cores, r.due})
	}
	for _, t := range m.s.queue {
		s.Waiting = append(s.Waiting, Waiting{t.number, t.cores, t.wall})
	}
	slices.SortFunc(s.Running, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Number, b.Number))
	})
	slices.SortFunc(s.Reservations, func(a, b Reservation) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// MaxProjected bounds the waiting jobs that Project plays forward. Deeper ones
// are left out, so that a slot may be sold before them: a batch system that looks
// no deeper does the same to its own jobs.
const MaxProjected = 1000

// Project is the scheduler's view (specs §1.3): the cores that are free from now
// on if every running job ends at its estimated end, and the waiting ones start,
// first come, first served with EASY back-filling around the reservations, and
// run for their requested time. A running job whose estimated end is over counts
// as ending in a second.
func (s Snapshot) Project() *Profile {
	play := newScheduler(s.Now, s.Capacity)
	for _, r := range s.Running {
		wall := max(r.End-s.Now, 1)
		play.start(task{number: r.Number, cores: r.Cores, wall: wall, run: wall}, s.Now)
	}
	for _, r := range s.Reservations {
		play.plan.Add(r.Start, r.End, -r.Cores)
	}
	for _, w := range s.Waiting[:min(len(s.Waiting), MaxProjected)] {
		wall := max(w.Wall, 1)
		play.submit(task{number: w.Number, cores: w.Cores, wall: wall, run: wall})
	}
	play.drain(s.Reservations)
	return play.plan
}

// drain plays from event to event until nothing waits.
func (s *scheduler) drain(sold []Reservation) {
	ends := make([]int64, 0, len(sold))
	for _, r := range sold {
		ends = append(ends, r.End)
	}
	slices.Sort(ends)
	for s.schedule(); len(s.queue) > 0; s.schedule() {
		for len(ends) > 0 && ends[0] <= s.now {
			ends = ends[1:]
		}
		s.now = s.nextEnd(ends)
		s.finish()
	}
}

// nextEnd is when the next job or reservation ends. There is one while jobs wait:
// an idle machine without sold slots starts the first.
func (s *scheduler) nextEnd(ends []int64) int64 {
	switch {
	case len(s.running) == 0:
		return ends[0]
	case len(ends) == 0:
		return s.running[0].next()
	}
	return min(s.running[0].next(), ends[0])
}

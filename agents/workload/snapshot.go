package workload

import (
	"cmp"
	"slices"
)

// Running is a running job as its batch system knows it.
type Running struct {
	Number int32 // the batch system's number of the job
	Cores  int
	End    int64 // estimated: start + requested time
}

// Waiting is a waiting job as its batch system knows it.
type Waiting struct {
	Number int32
	Cores  int
	Wall   int64 // requested time, seconds
}

// Snapshot is the knowledge of a batch system at an instant.
type Snapshot struct {
	Now          int64
	Capacity     int
	Running      []Running     // by end, then number
	Waiting      []Waiting     // in order of the queue
	Reservations []Reservation // by start, then ID; without ended ones
}

// Snapshot is what the machine's scheduler knows now, without the real run times of jobs.
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

// Started is a running job as it began.
type Started struct {
	Running
	Start int64 // when it began
	Wall  int64 // requested time, seconds
}

// Overdue reports whether the job exceeds its requested time, so that it gives way to a sold slot.
func (j Started) Overdue(now int64) bool { return j.Start+j.Wall <= now }

// Started returns the running jobs as a scheduler knows them, in order of start, then number.
func (m *Machine) Started() []Started {
	list := make([]Started, 0, len(m.s.running))
	for _, r := range m.s.running {
		list = append(list, Started{Running: Running{r.number, r.cores, r.due}, Start: r.end - r.run, Wall: r.wall})
	}
	slices.SortFunc(list, func(a, b Started) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// MaxProjected bounds the waiting jobs that Project plays forward. A slot may be sold
// before deeper ones, just as a batch system lets other jobs pass them.
const MaxProjected = 1000

// Project is the scheduler's view (specs §1.3): the cores that are free from now on if every
// running job ends at its estimated end, and the waiting jobs start, first come, first served with
// EASY back-filling around the reservations, and run for their requested time. A running job beyond
// its estimated end counts as ending in a second, and one without an end as ending after MaxAhead.
func (s Snapshot) Project() *Profile {
	play := newScheduler(s.Now, s.Capacity)
	for _, r := range s.Running {
		wall := bounded(r.End - s.Now)
		play.start(task{number: r.Number, cores: r.Cores, wall: wall, run: wall}, s.Now)
	}
	ends := make([]int64, len(s.Reservations))
	for i, r := range s.Reservations {
		ends[i] = min(r.End, s.Now+MaxAhead)
		play.plan.Add(r.Start, ends[i], -r.Cores)
	}
	slices.Sort(ends)
	for _, w := range s.Waiting[:min(len(s.Waiting), MaxProjected)] {
		wall := bounded(w.Wall)
		play.submit(task{number: w.Number, cores: w.Cores, wall: wall, run: wall})
	}
	play.drain(ends)
	return play.plan
}

// MaxAhead is the horizon of Project, ten years in seconds: longer jobs and reservations end then.
const MaxAhead = int64(10 * 365 * 24 * 3600)

func bounded(wall int64) int64 { return min(max(wall, 1), MaxAhead) }

// drain plays from event to event until nothing waits. The ends of the reservations come in order.
func (s *scheduler) drain(ends []int64) {
	for s.schedule(); len(s.queue) > 0; s.schedule() {
		for len(ends) > 0 && ends[0] <= s.now {
			ends = ends[1:]
		}
		s.now = s.nextEnd(ends)
		s.finish()
	}
}

// nextEnd is the next end of a job or reservation. It exists while jobs wait, since an
// idle machine without sold slots starts the first.
func (s *scheduler) nextEnd(ends []int64) int64 {
	switch {
	case len(s.running) == 0:
		return ends[0]
	case len(ends) == 0:
		return s.running[0].next()
	}
	return min(s.running[0].next(), ends[0])
}

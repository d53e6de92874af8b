package workload_test

import (
	"cmp"
	"slices"

	"ramp/agents/workload"
)

// slow is an independent batch system that looks at every second of its life and
// of its plan: first come, first served, EASY back-filling, sold slots, jobs that
// outlast their requested time. It has no events, no profile and no heap.
type slow struct {
	now      int64
	capacity int
	coming   []slowJob // by submit, then as in the log
	queue    []slowJob
	running  []slowJob
	sold     []workload.Reservation
	starts   map[int32]int64
}

type slowJob struct {
	number                 int32
	cores                  int
	submit, wall, run      int64
	start, end, due, delay int64
}

func newSlow(l *workload.Log, base int64) *slow {
	s := &slow{now: base, capacity: l.Capacity(), starts: map[int32]int64{}}
	for b := range l.Bursts() {
		j := slowJob{number: b.Number, cores: b.Cores, submit: b.Submit, wall: b.Requested, run: b.End - b.Start}
		switch {
		case b.End <= base:
		case b.Start <= base:
			s.running = append(s.running, j.startedAt(b.Start, base))
		default:
			j.cores = min(j.cores, s.capacity)
			s.coming = append(s.coming, j)
		}
	}
	slices.SortStableFunc(s.coming, func(a, b slowJob) int { return cmp.Compare(a.submit, b.submit) })
	return s
}

func (j slowJob) startedAt(t, now int64) slowJob {
	j.start, j.end, j.due, j.delay = t, t+j.run, t+j.wall, 60
	for j.due <= now {
		j.due, j.delay = j.due+j.delay, 2*j.delay
	}
	return j
}

// second lives through the second now: ends, evictions, arrivals, starts.
func (s *slow) second() {
	s.running = slices.DeleteFunc(s.running, func(j slowJob) bool { return j.end <= s.now })
	for i := range s.running {
		for j := &s.running[i]; j.due <= s.now; {
			j.due, j.delay = j.due+j.delay, 2*j.delay
		}
	}
	s.evict()
	for len(s.coming) > 0 && s.coming[0].submit <= s.now {
		s.queue, s.coming = append(s.queue, s.coming[0]), s.coming[1:]
	}
	s.pass()
}

func (s *slow) evict() {
	served := slices.ContainsFunc(s.sold, func(r workload.Reservation) bool { return r.Start <= s.now && s.now < r.End })
	for served && s.free(s.now, nil, 0) < 0 {
		late := -1
		for i, j := range s.running {
			over := s.now - j.start - j.wall
			if over >= 0 && (late < 0 || over > s.now-s.running[late].start-s.running[late].wall ||
				over == s.now-s.running[late].start-s.running[late].wall && j.number < s.running[late].number) {
				late = i
			}
		}
		if late < 0 {
			return
		}
		s.running = slices.Delete(s.running, late, late+1)
	}
}

// free is what the plan has at second t; head, if any, is kept from shadow on.
func (s *slow) free(t int64, head *slowJob, shadow int64) int {
	free := s.capacity
	for _, j := range s.running {
		if t < j.due {
			free -= j.cores
		}
	}
	for _, r := range s.sold {
		if r.Start <= t && t < r.End {
			free -= r.Cores
		}
	}
	if head != nil && shadow <= t && t < shadow+head.wall {
		free -= head.cores
	}
	return free
}

func (s *slow) fits(j slowJob, t int64, head *slowJob, shadow int64) bool {
	for u := t; u < t+j.wall; u++ {
		if s.free(u, head, shadow) < j.cores {
			return false
		}
	}
	return true
}

func (s *slow) pass() {
	for len(s.queue) > 0 && s.fits(s.queue[0], s.now, nil, 0) {
		s.begin(0)
	}
	if len(s.queue) == 0 {
		return
	}
	head, shadow := s.queue[0], s.now
	for !s.fits(head, shadow, nil, 0) {
		shadow++
	}
	for i := 1; i < len(s.queue); {
		if s.fits(s.queue[i], s.now, &head, shadow) {
			s.begin(i)
		} else {
			i++
		}
	}
}

func (s *slow) begin(i int) {
	j := s.queue[i].startedAt(s.now, s.now)
	s.queue = slices.Delete(s.queue, i, i+1)
	s.running = append(s.running, j)
	s.starts[j.number] = s.now
}

// textbook plays EASY back-filling as it is usually told: the shadow time is
// when enough running jobs have ended for the first waiting one, the extra cores
// are those it leaves over then, and a later job may start if it ends by the
// shadow time or takes no more than the extra cores. It knows no sold slots and
// wants jobs that keep to their requested time; it returns the starts.
func textbook(l *workload.Log) map[int32]int64 {
	s := newSlow(l, -1)
	for ; len(s.coming)+len(s.queue)+len(s.running) > 0; s.now++ {
		s.running = slices.DeleteFunc(s.running, func(j slowJob) bool { return j.end <= s.now })
		for len(s.coming) > 0 && s.coming[0].submit <= s.now {
			s.queue, s.coming = append(s.queue, s.coming[0]), s.coming[1:]
		}
		for len(s.queue) > 0 && s.queue[0].cores <= s.idle() {
			s.begin(0)
		}
		if len(s.queue) > 0 {
			s.textbookBackfill()
		}
	}
	return s.starts
}

func (s *slow) idle() int {
	idle := s.capacity
	for _, j := range s.running {
		idle -= j.cores
	}
	return idle
}

func (s *slow) textbookBackfill() {
	ends := slices.Clone(s.running)
	slices.SortFunc(ends, func(a, b slowJob) int { return cmp.Compare(a.due, b.due) })
	idle, shadow := s.idle(), s.now
	for i := 0; i < len(ends) && (idle < s.queue[0].cores || ends[i].due == shadow); i++ {
		idle, shadow = idle+ends[i].cores, ends[i].due
	}
	extra := idle - s.queue[0].cores
	for i := 1; i < len(s.queue); {
		j := s.queue[i]
		switch inTime := s.now+j.wall <= shadow; {
		case j.cores > s.idle() || !inTime && j.cores > extra:
			i++
			continue
		case !inTime:
			extra -= j.cores
		}
		s.begin(i)
	}
}

// sortSnapshot orders what the slow machine knows as a Snapshot promises.
func sortSnapshot(s workload.Snapshot) {
	slices.SortFunc(s.Running, func(a, b workload.Running) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Number, b.Number))
	})
	slices.SortFunc(s.Reservations, func(a, b workload.Reservation) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
}

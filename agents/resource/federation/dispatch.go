package federation

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// floor owns the site's modules and the jobs on them.
type floor struct {
	cfg   Config
	works Works
	until time.Time       // its modules are reserved
	runs  map[string]*run // that have not ended, by contract
	past  map[string]*run // that have, likewise
}

// Capacity is what the site has for jobs at the moment, for its bids. A job that found no modules,
// or lost them, waits here. One that the site has taken is coming until its input is here, or late.
func (s *Site) Capacity() english.Capacity {
	c := english.Capacity{Free: s.cfg.Modules - s.claimed()}
	for _, r := range s.victims(message.MaxLevels + 1) { // as many as there is room for in memory
		if r.seat == seatHeld {
			c.Running = append(c.Running, message.Victims{Level: r.Terms.Level, Modules: r.Got})
		}
	}
	for _, r := range s.runs { // in any order: a maximum; and those that come are sorted below
		switch {
		case r.State == message.JobStaging && !r.late && !s.late.is(r.Home, r.Owner):
			c.Coming = append(c.Coming, r.Terms)
		case r.State != message.JobStaging && r.seat == seatNone && !r.later:
			c.Queued = max(c.Queued, r.Terms.Level)
		}
	}
	for _, b := range s.bids { // likewise
		if b.Awaits() {
			c.Coming = append(c.Coming, b.Terms())
		}
	}
	slices.SortFunc(c.Coming, func(x, y message.JobTerms) int {
		return cmp.Or(y.Level-x.Level, x.Most-y.Most, x.Least-y.Least)
	})
	return c
}

// room is how many bytes of further jobs may be suspended.
func (s *floor) room() int64 {
	if s.cfg.Memory == 0 {
		return 1<<63 - 1
	}
	room := s.cfg.Memory
	for _, r := range s.runs { // in any order: a sum
		if r.State == message.JobSuspended || r.seat == seatLeaving {
			room -= r.Memory
		}
	}
	return room
}

// claimed counts the modules of jobs that run or will, without those that leave.
func (s *floor) claimed() (n int) {
	for _, r := range s.runs { // in any order: a sum
		if r.seat == seatClaimed || r.seat == seatHeld {
			n += r.Got
		}
	}
	return n
}

// occupied counts the modules on which jobs run, also those that were ordered to leave.
func (s *floor) occupied() (n int) {
	for _, r := range s.runs { // in any order: a sum
		if r.seat == seatHeld || r.seat == seatLeaving {
			n += r.Got
		}
	}
	return n
}

// dispatch lets jobs begin and go on, the most urgent ones first, and suspends jobs for them.
func (s *floor) dispatch(now time.Time) protocol.Output {
	var out protocol.Output
	blocked := message.MaxLevels + 1
	for _, r := range s.waiting() {
		if r.Terms.Level >= blocked {
			continue // a job of its level or above waits for modules
		}
		if r.later = r.State == message.JobWaiting && !s.fits(now, r.Terms); r.later {
			continue
		}
		claimed, o := s.claim(now, r)
		if !claimed {
			blocked = r.Terms.Level
		}
		out = out.Join(o)
	}
	return out.Join(s.begin(now))
}

// fits reports whether a job that began now would end before the reservation that it ends with.
func (s *floor) fits(now time.Time, t message.JobTerms) bool {
	return s.cfg.Longest == 0 || t.Wall <= s.cfg.Longest && !now.Add(t.Wall+startSlack).After(s.until)
}

// waiting lists the jobs that could run, in the order in which they may: by level; of one
// level those that have begun, then jobs of the federation, the last one first, since a
// winner queues at the head; then local ones.
func (s *floor) waiting() (list []*run) {
	for _, r := range s.runs { // in any order: sorted below
		if r.seat == seatNone && (r.State == message.JobWaiting || r.State == message.JobSuspended) {
			list = append(list, r)
		}
	}
	class := func(r *run) int {
		switch {
		case r.State == message.JobSuspended:
			return 0
		case r.Home != "":
			return 1
		}
		return 2
	}
	slices.SortFunc(list, func(a, b *run) int {
		order := a.Sold.Compare(b.Sold)
		if class(a) == 1 {
			order = -order
		}
		return cmp.Or(b.Terms.Level-a.Terms.Level, class(a)-class(b), order, cmp.Compare(a.Contract, b.Contract))
	})
	return list
}

// claim gives a job its modules, if they are free or can be freed.
func (s *floor) claim(now time.Time, r *run) (bool, protocol.Output) {
	victims := s.victims(r.Terms.Level)
	free := s.cfg.Modules - s.claimed()
	all := free
	for _, v := range victims {
		all += v.Got
	}
	got := r.Got
	if r.State == message.JobWaiting {
		got = min(r.Terms.Most, all)
	}
	if got > all || got < r.Terms.Least {
		return false, protocol.Output{}
	}
	var out protocol.Output
	for _, v := range victims {
		if free >= got {
			break
		}
		free += v.Got
		out = out.Join(s.expel(now, v))
	}
	r.seat, r.Got = seatClaimed, got
	return true, out
}

// victims lists the jobs below a level that may be suspended, the first one first: of the
// lowest level; of one level those that have not begun, then the newest.
func (s *floor) victims(level int) (list []*run) {
	for _, r := range s.runs { // in any order: sorted below
		if r.Terms.Level < level && (r.seat == seatClaimed || r.seat == seatHeld) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *run) int {
		return cmp.Or(a.Terms.Level-b.Terms.Level, int(a.seat-b.seat), b.Begun.Compare(a.Begun), cmp.Compare(a.Contract, b.Contract))
	})
	room := s.room()
	return slices.DeleteFunc(list, func(r *run) bool {
		if r.seat == seatHeld {
			room -= r.Memory
		}
		return room < 0
	})
}

// expel takes a job's modules away.
func (s *floor) expel(now time.Time, r *run) protocol.Output {
	if r.seat == seatClaimed { // it has not begun
		r.seat = seatNone
		return protocol.Output{}
	}
	r.seat = seatLeaving
	return s.signal(now, r, message.SignalSuspend)
}

// signal orders a job to be suspended or resumed, until the batch system reports that it is.
func (s *floor) signal(now time.Time, r *run, verb message.JobSignal) protocol.Output {
	r.ordered, r.alarm = verb, now.Add(signalPeriod)
	return s.works.Signal(now, r.Run, verb).Join(wake(r.alarm))
}

// begin lets the jobs with claimed modules run, once nothing else does on them.
func (s *floor) begin(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range sorted(s.runs) {
		r := s.runs[id]
		if r.seat != seatClaimed || s.occupied()+r.Got > s.cfg.Modules {
			continue
		}
		r.seat = seatHeld
		if r.State == message.JobSuspended {
			out = out.Join(s.signal(now, r, message.SignalResume))
			continue
		}
		r.Begun = now
		r.become(now, message.JobRunning)
		out = out.Join(s.change(r)).Join(s.works.Begin(now, r.Run))
	}
	return out
}

package swf

import (
	"strconv"
	"time"

	"ramp/agents/queue"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A site that sharpens sells slots over jobs which it expects to end before their
// time. Such a slot is refused only for the cores of other slots, and the truth shows
// when it begins: if jobs that run within their time leave too few cores, it is lost,
// like a reservation that a batch system forgets; of several that begin together, the
// one sold last first. What has begun is safe, and so is what was not sold over jobs.

// ReserveOver blocks a slot over whatever runs or waits.
func (s *machine) ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if !s.over {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeForbidden, Note: "this machine keeps to the requested times"}
	}
	s.Advance(now)
	return s.reserve(now, reservation{ID: id, Slot: slot, Over: true}, func(r workload.Reservation, known bool) error { return s.overlay(now, r, known) })
}

// overlay takes the cores of a slot, if other slots leave them.
func (s *machine) overlay(now time.Time, r workload.Reservation, known bool) error {
	if begin := max(r.Start, s.m.Now()); !known && r.Cores <= s.m.Capacity() && r.End > begin {
		if free := s.leftOver(begin, r, now); free < r.Cores {
			return busyError{max(free, 0), r.Cores}
		}
	}
	s.plan = nil
	return s.m.Restore(r)
}

// leftOver is how many cores other slots leave to one; if it has begun, other slots
// and jobs.
func (s *machine) leftOver(begin int64, r workload.Reservation, now time.Time) int {
	var uses []protocol.Slot
	for _, x := range s.state.Reservations {
		if x.Slot.End.After(now) {
			uses = append(uses, queue.Outward(x.Slot))
		}
	}
	free := s.m.Capacity() - queue.Taken(uses, protocol.Slot{Start: s.wall(begin), End: s.wall(r.End), Cores: r.Cores})
	if r.Start <= s.m.Now() {
		free -= s.held()
	}
	return free
}

// held is how many cores jobs have that run within their time.
func (s *machine) held() int {
	cores := 0
	for _, j := range s.m.Started() {
		if !j.Overdue(s.m.Now()) {
			cores += j.Cores
		}
	}
	return cores
}

// begin plays the machine from start to start of the slots that begin by an instant,
// and looks at each.
func (s *machine) begin(to int64) (changed bool) {
	if !s.over {
		return false
	}
	for {
		start := s.nextStart(to)
		if start > to {
			s.state.Checked = max(s.state.Checked, to)
			return changed
		}
		s.m.Advance(start)
		s.state.Checked, changed, s.plan = start, true, nil
		s.lose(start)
		// Not kept: it is found again after a restart, and the agent, who knows better,
		// lets it go.
		_ = s.keep()
	}
}

// nextStart is when the next slot begins that was not looked at; after to: none does.
func (s *machine) nextStart(to int64) int64 {
	next := to + 1
	for _, r := range s.state.Reservations {
		if start := s.second(r.Slot.Start); r.Over && start > s.state.Checked {
			next = min(next, start)
		}
	}
	return next
}

// lose drops slots over jobs that begin now and do not fit beside the jobs that run and the
// slots that began before.
func (s *machine) lose(start int64) {
	over := s.held() - s.m.Capacity()
	for _, r := range s.state.Reservations {
		if s.second(r.Slot.Start) <= start && s.after(r.Slot.End) > start {
			over += r.Slot.Cores
		}
	}
	for i := len(s.state.Reservations) - 1; i >= 0 && over > 0; i-- {
		r := s.state.Reservations[i]
		if !r.Over || s.second(r.Slot.Start) != start {
			continue
		}
		over -= r.Slot.Cores
		s.state.Reservations = append(s.state.Reservations[:i:i], s.state.Reservations[i+1:]...)
		s.m.Release(r.ID)
	}
}

// tellJobs puts the jobs into a state: what bounds are reckoned from.
func (s *machine) tellJobs(q *message.QueueChanged) {
	for _, j := range s.m.Started() {
		q.Running = append(q.Running, message.RunningJob{
			Cores: j.Cores, End: s.wall(j.End), ID: strconv.Itoa(int(j.Number)),
			Started: s.wall(j.Start), Wall: time.Duration(j.Wall) * time.Second,
		})
	}
	waiting := s.m.Snapshot().Waiting
	for _, w := range waiting[:min(len(waiting), workload.MaxProjected)] {
		q.Queued = append(q.Queued, message.QueuedJob{Cores: w.Cores, Wall: time.Duration(w.Wall) * time.Second})
	}
}

package swf

import (
	"strconv"
	"time"

	"ramp/agents/queue"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A site that overbooks sells slots over jobs that it expects to end early. Reserve
// refuses such a slot only for the cores of other slots. When the slot begins, and jobs
// within their requested time leave too few cores, the machine drops it, like a batch
// system that loses a reservation; of several slots that begin together, the one sold
// last is dropped first. Slots that have begun, or lie over no jobs, are safe.

// ReserveOver blocks a slot over running and waiting jobs.
func (s *machine) ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if !s.over {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeForbidden, Note: "this machine reserves no slots over jobs"}
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

// leftOver is the number of cores that other slots leave to a slot; if it has begun,
// also the running jobs.
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

// held is the number of cores that jobs within their requested time occupy.
func (s *machine) held() int {
	cores := 0
	for _, j := range s.m.Started() {
		if !j.Overdue(s.m.Now()) {
			cores += j.Cores
		}
	}
	return cores
}

// begin plays the machine to the start of every slot that begins by an instant, and
// checks the slot.
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
		// Not saved: a restart finds the slot again, and the agent, who knows better, releases it.
		_ = s.keep()
	}
}

// nextStart is the start of the next unchecked slot; after to: there is none.
func (s *machine) nextStart(to int64) int64 {
	next := to + 1
	for _, r := range s.state.Reservations {
		if start := s.second(r.Slot.Start); r.Over && start > s.state.Checked {
			next = min(next, start)
		}
	}
	return next
}

// lose drops slots over jobs that begin now and do not fit beside the running jobs and
// the slots that began before.
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

// addJobs adds the jobs to a state, from which the agent derives bounds.
func (s *machine) addJobs(q *message.QueueChanged) {
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

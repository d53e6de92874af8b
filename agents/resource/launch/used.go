package launch

import (
	"math"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Used combines the launches of a reservation into one status, from which usage is settled instead
// of the batch system's report on the slot. The last launch says how the unit ended, see decisive,
// the usage is the sum, and the share the least of all. Before the end of the slot the unit still
// runs, since another launch may follow, unless the launch has ended it or the buyer has released
// the unit. It is false if no launch counts, see counts, and the unit is not released.
func (s *Site) Used(now time.Time, reservation string) (protocol.JobStatus, bool) {
	var runs []*job
	released := false
	for _, j := range s.jobs.in(reservation) {
		if released = released || j.Released; j.counts() {
			runs = append(runs, j)
		}
	}
	switch {
	case len(runs) == 0 && released:
		return protocol.JobStatus{State: protocol.JobExited, Ended: now}, true
	case len(runs) == 0:
		return protocol.JobStatus{}, false
	}
	last := decisive(runs)
	all := last.end()
	all.Started, all.Usage = runs[0].Status.Started, together(runs)
	if released {
		all.Ended = protocol.Earlier(all.Ended, now)
	} else if slot := runs[0].Slot; all.State.Over() && now.Before(slot.End) && !s.endsUnit(last) {
		all = protocol.JobStatus{State: protocol.JobRunning, Started: all.Started, Usage: all.Usage}
	}
	return all, true
}

// decisive is the launch that says how its unit ended: the last, but none that never began if an
// earlier one did. Else a buyer who has used its slot could undo that.
func decisive(runs []*job) *job {
	for _, j := range slices.Backward(runs) {
		if !j.neverBegan() {
			return j
		}
	}
	return runs[len(runs)-1]
}

// neverBegan reports whether a launch is over and its program never ran.
func (j *job) neverBegan() bool {
	return j.Stage == message.StageFailed || j.Status.State.Over() && j.Status.Started.IsZero()
}

// endsUnit reports whether a launch that is over ended its unit, since it had its cores: its
// buyer gives the rest of the slot back, or the contract is metered (001). The usage is due
// then, and the cores are free.
func (s *Site) endsUnit(j *job) bool {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return ok && (u.Metered || j.Last) && j.Stage != message.StageFailed && j.Status.Delivered()
}

// Ends returns the reservation of a job that ends its unit when it is over; false: it does
// not, or the job is unknown.
func (s *Site) Ends(id string) (reservation string, ok bool) {
	j := s.jobs.byID[id]
	if j == nil {
		return "", false
	}
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return j.Reservation, ok && (u.Metered || j.Last)
}

// Released returns the reservation of a unit that its buyer has released by an order about
// a launch; false: it has not.
func (s *Site) Released(user protocol.AgentID, o message.LaunchOrder) (reservation string, ok bool) {
	j := s.jobs.byKey[key{user, o.Contract, o.Unit, o.ID}]
	if o.Verb != message.VerbRelease || j == nil || !j.Released {
		return "", false
	}
	return j.Reservation, true
}

// counts reports whether a launch affects how its unit ended. A launch that failed
// before it began counts only if the site is at fault: one that the buyer killed, or
// that came late or whose inputs did, leaves the slot ready for another.
func (j *job) counts() bool {
	return !j.neverBegan() || !j.late && (j.Stage != message.StageFailed || j.Fault)
}

// end is the status with which a launch ends its unit.
func (j *job) end() protocol.JobStatus {
	switch {
	case j.Stage == message.StageFailed:
		return protocol.JobStatus{State: protocol.JobLost, Ended: j.Slot.End, Note: j.Why}
	case j.Status.State == "":
		return protocol.JobStatus{State: protocol.JobWaiting}
	}
	return j.Status
}

// together adds up the usage of successive launches.
func together(runs []*job) protocol.Usage {
	var all protocol.Usage
	begun := false
	for _, j := range runs {
		u := j.Status.Usage
		if j.Status.Started.IsZero() && u == (protocol.Usage{}) {
			continue // it never ran
		}
		if !begun || u.Share < all.Share {
			all.Share = u.Share
		}
		all.CPU, all.Wall, begun = plus(all.CPU, u.CPU), plus(all.Wall, u.Wall), true
	}
	return all
}

// plus adds durations of 0 or more, up to the longest one.
func plus(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Measure asks for the current usage of the program that runs in a reservation; false: none runs.
func (s *Site) Measure(reservation string) (protocol.Output, bool) {
	for _, j := range s.jobs.in(reservation) {
		if j.Stage == message.StageSubmitted {
			return s.composer.queue(protocol.QueryRef, message.JobQuery{Job: s.composer.spec(j)}), true
		}
	}
	return protocol.Output{}, false
}

// Stop ends the programs in a reservation whose contract ended before its slot: its
// time limit was reached, or its prepayment used up.
func (s *Site) Stop(now time.Time, reservation string) protocol.Output {
	var out protocol.Output
	for _, j := range s.jobs.in(reservation) {
		if j.submitted() && now.Before(j.Slot.End) {
			out = out.Join(s.stop(j))
		}
	}
	return out
}

// stop kills a job that its buyer killed, or whose unit was reported. It is repeated
// with every query about the job, since the batch system may miss a signal.
func (s *Site) stop(j *job) protocol.Output {
	if !s.ends(j) {
		return protocol.Output{}
	}
	return s.composer.signal(j, message.SignalKill)
}

func (s *Site) ends(j *job) bool {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return j.Killed || ok && u.Reported
}

// checkPause is the time until the next query about a submitted job.
func (s *Site) checkPause(j *job) time.Duration {
	if s.ends(j) && !j.forbidden {
		return stopPeriod
	}
	return checkPeriod
}

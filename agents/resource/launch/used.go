package launch

import (
	"math"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Used is how the launches of a reservation stand together: what settlement after
// the fact rests on, in place of what the batch system says of the bare slot.
// Until the slot's end another may follow, so none is over before, unless its buyer
// has ended a metered contract by killing it (001). Then the last says how the unit
// ended, and the usage is that of all; the least share is the least of any. It is
// false if no launch counts, see counts.
func (s *Site) Used(now time.Time, reservation string) (protocol.JobStatus, bool) {
	var runs []*job
	for _, j := range s.jobs {
		if j.Reservation == reservation && j.counts() {
			runs = append(runs, j)
		}
	}
	if len(runs) == 0 {
		return protocol.JobStatus{}, false
	}
	slices.SortFunc(runs, func(a, b *job) int { return a.Number - b.Number })
	last := runs[len(runs)-1]
	all := last.end()
	all.Started, all.Usage = runs[0].Status.Started, together(runs)
	if slot := runs[0].Slot; all.State.Over() && now.Before(slot.End) && !s.endsContract(last) {
		all = protocol.JobStatus{State: protocol.JobRunning, Started: all.Started, Usage: all.Usage}
	}
	return all, true
}

// endsContract reports whether a launch has ended the metered contract of its unit:
// what was used is due when its buyer kills it, and the contract is void.
func (s *Site) endsContract(j *job) bool {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return ok && u.Metered && j.Status.State == protocol.JobKilled
}

// Metered is the reservation of a job whose unit is paid for what is used; false:
// it is not, or nobody knows the job.
func (s *Site) Metered(id string) (reservation string, ok bool) {
	j := s.jobs[id]
	if j == nil {
		return "", false
	}
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return j.Reservation, ok && u.Metered
}

// counts reports whether a launch says how its unit ended. One that failed before
// it began does only if that is the site's fault: what the buyer killed, or did
// not bring in time, leaves the slot as it was, ready for another.
func (j *job) counts() bool { return j.Stage != message.StageFailed || j.Fault }

// end is a launch's own part of how its unit ended.
func (j *job) end() protocol.JobStatus {
	switch {
	case j.Stage == message.StageFailed:
		return protocol.JobStatus{State: protocol.JobLost, Ended: j.Slot.End, Note: j.Why}
	case j.Status.State == "":
		return protocol.JobStatus{State: protocol.JobWaiting}
	}
	return j.Status
}

// together is what launches used one after the other.
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

// plus adds durations of 0 or more, up to the longest that there is.
func plus(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Measure asks how the program stands that runs in a reservation: its meter goes on,
// and what was told last is old. It is false if none runs.
func (s *Site) Measure(reservation string) (protocol.Output, bool) {
	for _, id := range s.order() {
		if j := s.jobs[id]; j.Reservation == reservation && j.Stage == message.StageSubmitted {
			return s.queue(protocol.QueryRef, message.JobQuery{Job: s.spec(j)}), true
		}
	}
	return protocol.Output{}, false
}

// Stop ends what runs in a reservation whose unit is over by its contract before
// its slot is: its time limit is reached, or its prepayment used up.
func (s *Site) Stop(now time.Time, reservation string) protocol.Output {
	var out protocol.Output
	for _, id := range s.order() {
		if j := s.jobs[id]; j.Reservation == reservation && j.submitted() && now.Before(j.Slot.End) {
			out = out.Join(s.stop(j))
		}
	}
	return out
}

// stop kills a job that its buyer has killed, or of a unit that was reported. The
// batch system may miss that, so it is said with every question about the job.
func (s *Site) stop(j *job) protocol.Output {
	if !s.ends(j) {
		return protocol.Output{}
	}
	return s.signal(j, message.SignalKill)
}

// ends reports whether a job is to end.
func (s *Site) ends(j *job) bool {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return j.Killed || ok && u.Reported
}

// checkPause is until the batch system is asked again about a job that it has.
func (s *Site) checkPause(j *job) time.Duration {
	if s.ends(j) && !j.forbidden {
		return stopPeriod
	}
	return checkPeriod
}

package launch

import (
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Waits are the launches of a federation's jobs: its site decides when such a job begins
// (003), and in which slot. Each unit has one launch.
type Waits struct{ *Site }

// State is the stage of a unit's last launch, with its ID, its job's status, and why it
// failed; false: it has none.
func (s Waits) State(reservation string) (id string, status message.LaunchStatus, ok bool) {
	j := s.last(reservation)
	if j == nil {
		return "", message.LaunchStatus{}, false
	}
	return j.ID, s.composer.status(j), true
}

func (s Waits) last(reservation string) *job {
	list := s.jobs.in(reservation)
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Open counts the launches that may run in the batch system's reservations of a prefix, and those
// of them that do.
func (s *Site) Open(prefix string) (open, running int) {
	for _, j := range s.jobs.live { // in any order: they are only counted
		if j.submitted() && strings.HasPrefix(j.Batch, prefix) {
			open++
			if j.Status.State == protocol.JobRunning {
				running++
			}
		}
	}
	return open, running
}

// Fit suspends launches in the batch system's reservations of a prefix that do not fit into so many cores,
// and resumes those that do; running ones come first.
func (s Waits) Fit(prefix string, cores int) (out protocol.Output) {
	for _, state := range []protocol.JobState{protocol.JobRunning, protocol.JobSuspended} {
		for _, j := range s.jobs.running() {
			if !j.submitted() || !strings.HasPrefix(j.Batch, prefix) || j.Status.State != state {
				continue
			}
			fits := j.Slot.Cores <= cores
			if fits {
				cores -= j.Slot.Cores
			}
			switch {
			case fits && state == protocol.JobSuspended:
				out = out.Join(s.composer.signal(j, message.SignalResume))
			case !fits && state == protocol.JobRunning:
				out = out.Join(s.composer.signal(j, message.SignalSuspend))
			}
		}
	}
	return out
}

// Begin lets a launch begin that is ready and waits for its site's word.
func (s Waits) Begin(now time.Time, reservation string, slot protocol.Slot, batch string) protocol.Output {
	j := s.last(reservation)
	if j == nil || !j.Waits || j.Stage != message.StageReady {
		return protocol.Output{}
	}
	j.Slot, j.Batch, j.Waits = slot, batch, false
	return s.jobs.save(j).Join(s.begin(now, j))
}

// Signal suspends or resumes a launch that runs.
func (s Waits) Signal(reservation string, verb message.JobSignal) protocol.Output {
	j := s.last(reservation)
	if j == nil || !j.submitted() {
		return protocol.Output{}
	}
	return s.composer.signal(j, verb)
}

// Drop forgets a launch that never began, with its files.
func (s Waits) Drop(reservation string) protocol.Output {
	j := s.last(reservation)
	if j == nil || j.submitted() || j.Stage == message.StageCollecting {
		return protocol.Output{}
	}
	return s.forget(j)
}

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

// Resume lets the suspended launches in the batch system's reservations of a prefix go on, as far as
// their cores fit beside those of the others; if nothing else runs, one does in any case.
func (s Waits) Resume(prefix string, cores int) (out protocol.Output) {
	var idle []*job
	used := 0
	for _, j := range s.jobs.running() {
		switch {
		case !j.submitted() || !strings.HasPrefix(j.Batch, prefix):
		case j.Status.State == protocol.JobSuspended:
			idle = append(idle, j)
		default:
			used += j.Slot.Cores
		}
	}
	for _, j := range idle {
		if used == 0 || used+j.Slot.Cores <= cores {
			used += j.Slot.Cores
			out = out.Join(s.composer.signal(j, message.SignalResume))
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

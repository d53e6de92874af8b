package launch

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A job of a federation begins when its site says so (003), in a slot that the site then
// knows. The methods below are about the one launch of such a unit.

// State is the stage of a unit's last launch, with its ID, its job's status, and why it
// failed; false: it has none.
func (s *Site) State(reservation string) (id string, status message.LaunchStatus, ok bool) {
	j := s.last(reservation)
	if j == nil {
		return "", message.LaunchStatus{}, false
	}
	return j.ID, s.composer.status(j), true
}

func (s *Site) last(reservation string) *job {
	list := s.jobs.in(reservation)
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Begin lets a launch begin that is ready and waits for its site's word.
func (s *Site) Begin(now time.Time, reservation string, slot protocol.Slot, batch string) protocol.Output {
	j := s.last(reservation)
	if j == nil || !j.Waits || j.Stage != message.StageReady {
		return protocol.Output{}
	}
	j.Slot, j.Batch, j.Waits = slot, batch, false
	return s.jobs.save(j).Join(s.begin(now, j))
}

// Signal suspends or resumes a launch that runs.
func (s *Site) Signal(reservation string, verb message.JobSignal) protocol.Output {
	j := s.last(reservation)
	if j == nil || !j.submitted() {
		return protocol.Output{}
	}
	return s.composer.signal(j, verb)
}

// Drop forgets a launch that never began, with its files.
func (s *Site) Drop(reservation string) protocol.Output {
	j := s.last(reservation)
	if j == nil || j.submitted() || j.Stage == message.StageCollecting {
		return protocol.Output{}
	}
	return s.forget(j)
}

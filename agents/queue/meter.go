package queue

import (
	"hash/fnv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Meter is a System that knows what became of a slot's cores. One that is none
// delivers its slots: their cores were there, and used, until the end.
type Meter interface {
	// Used is how the jobs of a reservation stand, as far as slot says that it is
	// one, and what their usage rests on; unavailable to be asked again.
	Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason)
}

// used answers what became of a slot; what cannot be told now is asked again.
func (l *Loop) used(now time.Time, q message.SlotQuery) (message.SlotUsed, bool) {
	if m, ok := l.system.(Meter); ok {
		status, measured, why := m.Used(now, q.ID, q.Slot)
		if why != nil {
			l.log.Warn("batch system: what a slot used cannot be told now", "reservation", q.ID, "why", why.Note)
		}
		return message.SlotUsed{ID: q.ID, At: now, Status: status, Measured: measured}, why == nil
	}
	return message.SlotUsed{ID: q.ID, At: now, Status: (Model{}).Status(now, q.ID, q.Slot)}, true
}

// Model says what a job that nobody runs would have used: of machines that are
// replayed or simulated. The zero Model keeps every core busy until the slot's
// end. What it draws hangs on the reservation's ID alone, so that it says the
// same whenever it is asked.
type Model struct {
	// FailPerMille are the jobs that the machine loses half way through their slot,
	// of a thousand.
	FailPerMille int
	// IdlePerMille is at most so much of the slot's core time that a job leaves
	// unused, in thousandths.
	IdlePerMille int
	// BusyPerMille is at most so much of the cores that others take for a while.
	BusyPerMille int
}

// perMille is all of something.
const perMille = 1000

// Status is how the job of a slot stands.
func (m Model) Status(now time.Time, id string, slot protocol.Slot) protocol.JobStatus {
	if now.Before(slot.Start) {
		return protocol.JobStatus{State: protocol.JobWaiting}
	}
	s := protocol.JobStatus{State: protocol.JobRunning, Started: slot.Start}
	end := slot.End
	if draw(id, "fails") < m.FailPerMille {
		end = slot.Start.Add(slot.Wall() / 2)
	}
	if !now.Before(end) {
		s.State, s.Ended, now = protocol.JobExpired, end, end
		if end.Before(slot.End) {
			s.State, s.Note = protocol.JobLost, "the model has lost it"
		}
	}
	s.Usage = m.usage(id, now.Sub(slot.Start), slot.Cores)
	return s
}

func (m Model) usage(id string, wall time.Duration, cores int) protocol.Usage {
	idle := draw(id, "idle") * m.IdlePerMille / perMille
	taken := draw(id, "taken") * m.BusyPerMille / perMille
	return protocol.Usage{
		Wall:  wall,
		CPU:   time.Duration(cores) * (wall / perMille) * time.Duration(perMille-idle),
		Share: int64(cores) * protocol.Core / perMille * int64(perMille-taken),
	}
}

// draw is a number in 0..999 that an ID and a purpose always give.
func draw(id, what string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + "\x00" + id)) // it never fails
	return int(h.Sum32() % perMille)
}

package queue

import (
	"hash/fnv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Meter is a System that measures the use of a slot's cores. Any other System counts a
// slot as fully used, since its cores were kept ready until the end.
type Meter interface {
	// Used returns the status of a reservation's jobs and the source of their usage.
	// Code unavailable asks the caller to try again. The System may have forgotten slot.
	Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason)
}

// used answers a query about a slot; without an answer the agent asks again.
func (l *Loop) used(now time.Time, q message.SlotQuery) (message.SlotUsed, bool) {
	if m, ok := l.system.(Meter); ok {
		status, measured, why := m.Used(now, q.ID, q.Slot)
		if why != nil {
			l.log.Warn("batch system: cannot measure the usage of a slot now", "reservation", q.ID, "why", why.Note)
		}
		return message.SlotUsed{ID: q.ID, At: now, Status: status, Measured: measured}, why == nil
	}
	return message.SlotUsed{ID: q.ID, At: now, Status: (Model{}).Status(now, q.ID, q.Slot)}, true
}

// Model simulates the usage of jobs for machines that are replayed or simulated. The
// zero Model keeps every core busy until the slot's end. Its random values depend on
// the reservation's ID alone, so that every query gets the same answer.
type Model struct {
	// FailPerMille is how many jobs in a thousand the machine loses half way through their slot.
	FailPerMille int
	// IdlePerMille bounds the share of the slot's core time that a job leaves unused,
	// in thousandths.
	IdlePerMille int
	// BusyPerMille bounds the share of the cores that others take for a while.
	BusyPerMille int
}

// perMille is the whole in thousandths.
const perMille = 1000

// Status is the status of a slot's job.
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
			s.State, s.Note = protocol.JobLost, "the simulated machine lost it"
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

// draw returns a number in 0..999 that depends only on the ID and the purpose.
func draw(id, what string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + "\x00" + id)) // it never fails
	return int(h.Sum32() % perMille)
}

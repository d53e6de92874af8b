package resource_test

import (
	"fmt"
	"sort"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// batch is a batch system of so many cores that answers at once.
type batch struct {
	cores int
	slots map[string]protocol.Slot
	other []protocol.Slot               // reservations of others
	jobs  map[string]protocol.JobStatus // that were submitted
	stuck bool                          // it runs no programs
	cpu   time.Duration                 // in a second, of those that run

	running []message.RunningJob // of others; slots may be laid over them
}

// look is how a job stands, with what it has used by now.
func (b *batch) look(now time.Time, id string) protocol.JobStatus {
	s := b.jobs[id]
	if s.State == protocol.JobRunning && b.cpu > 0 {
		wall := now.Sub(s.Started)
		s.Usage = protocol.Usage{Wall: wall, CPU: wall / time.Second * b.cpu, Share: 10 * protocol.Core}
	}
	return s
}

// kill ends a job.
func (b *batch) kill(now time.Time, id string) protocol.Body {
	s := b.look(now, id)
	s.State, s.Ended = protocol.JobKilled, now
	b.jobs[id] = s
	return message.JobChanged{ID: id, At: now, Status: s}
}

func (b *batch) submit(now time.Time, job message.Job) protocol.Body {
	if _, there := b.jobs[job.ID]; there {
		return message.JobChanged{ID: job.ID, At: now, Status: b.look(now, job.ID)}
	}
	if b.stuck {
		return message.JobRefused{ID: job.ID, Reason: protocol.Reason{Code: protocol.CodeForbidden, Unit: protocol.AllUnits, Note: "broken"}}
	}
	b.jobs[job.ID] = protocol.JobStatus{State: protocol.JobRunning, Started: now}
	return message.JobChanged{ID: job.ID, At: now, Status: b.jobs[job.ID]}
}

func (b *batch) free(slot protocol.Slot) int {
	least := b.cores
	for at := slot.Start; at.Before(slot.End); at = at.Add(time.Minute) {
		free := b.cores
		for _, s := range b.slots {
			if !at.Before(s.Start) && at.Before(s.End) {
				free -= s.Cores
			}
		}
		for _, s := range b.other {
			if !at.Before(s.Start) && at.Before(s.End) {
				free -= s.Cores
			}
		}
		least = min(least, free)
	}
	return least
}

// leaves reports whether the jobs of others leave a slot its cores, by their requested
// times.
func (b *batch) leaves(slot protocol.Slot) bool {
	cores := b.free(slot)
	for _, j := range b.running {
		if j.End.After(slot.Start) {
			cores -= j.Cores
		}
	}
	return cores >= slot.Cores
}

func (b *batch) answer(now time.Time, m protocol.Message) protocol.Message {
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Reserve:
		answer := message.Reserved{ID: r.ID, OK: true, Slot: r.Slot}
		if old, ok := b.slots[r.ID]; ok {
			answer.Slot = old
		} else if b.free(r.Slot) < r.Slot.Cores || !r.Over && !b.leaves(r.Slot) {
			answer = message.Reserved{ID: r.ID, Reason: protocol.Reason{Code: protocol.CodeBusy, Free: max(b.free(r.Slot), 0), Note: "others have them"}}
		} else {
			b.slots[r.ID] = r.Slot
		}
		body = answer
	case message.Keep:
		slot, ok := b.slots[r.ID]
		body = message.Reserved{ID: r.ID, Kept: true, OK: ok, Slot: slot, Reason: protocol.Reason{Code: protocol.CodeUnknown}}
	case message.Release:
		delete(b.slots, r.ID)
		body = message.Released{ID: r.ID, OK: true}
	case message.QueueQuery:
		body = b.state(now)
	case message.SlotQuery: // as a batch system that does not know: the slot was there to its end
		body = message.SlotUsed{ID: r.ID, At: now, Status: (queue.Model{}).Status(now, r.ID, r.Slot)}
	case message.Submit:
		body = b.submit(now, r.Job)
	case message.JobQuery:
		body = message.JobChanged{ID: r.Job.ID, At: now, Status: b.look(now, r.Job.ID)}
	case message.Signal:
		if r.Verb == message.SignalKill {
			body = b.kill(now, r.ID)
			break
		}
		state := map[message.JobSignal]protocol.JobState{message.SignalSuspend: protocol.JobSuspended, message.SignalResume: protocol.JobRunning}[r.Verb]
		b.jobs[r.ID] = protocol.JobStatus{State: state, Started: now}
		body = message.JobChanged{ID: r.ID, At: now, Status: b.jobs[r.ID]}
	default:
		panic("unknown request " + m.Body.Kind())
	}
	return protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Protocol: protocol.ProtocolQueue, Body: body}
}

func (b *batch) state(now time.Time) message.QueueChanged {
	q := message.QueueChanged{At: now, Capacity: b.cores, Running: b.running}
	for i, slot := range b.other {
		q.Reservations = append(q.Reservations, message.QueueReservation{ID: fmt.Sprint(i), Slot: slot})
	}
	ids := make([]string, 0, len(b.slots))
	for id := range b.slots {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		if b.slots[id].End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: b.slots[id], Mine: true})
		}
	}
	return q
}

package markettest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Batch is a batch system of so many cores. It says the truth, grants whatever
// fits, and survives crashes of its agent.
type Batch struct {
	Cores int
	Slots map[string]protocol.Slot // what is reserved, by ID
}

// free is the fewest cores that are free at any instant of a slot. It changes
// only where a reservation starts.
func (b *Batch) free(slot protocol.Slot) int {
	least := b.freeAt(slot.Start)
	for _, s := range b.Slots {
		if s.Start.After(slot.Start) && s.Start.Before(slot.End) {
			least = min(least, b.freeAt(s.Start))
		}
	}
	return least
}

func (b *Batch) freeAt(t time.Time) int {
	free := b.Cores
	for _, s := range b.Slots {
		if !t.Before(s.Start) && t.Before(s.End) {
			free -= s.Cores
		}
	}
	return free
}

// answer does what a request asks.
func (b *Batch) answer(now time.Time, m protocol.Message) protocol.Message {
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Reserve:
		body = b.reserve(r)
	case message.Keep:
		slot, ok := b.Slots[r.ID]
		body = message.Reserved{ID: r.ID, Kept: true, OK: ok, Slot: slot, Reason: protocol.Reason{Code: protocol.CodeUnknown}}
	case message.Release:
		delete(b.Slots, r.ID)
		body = message.Released{ID: r.ID, OK: true}
	case message.QueueQuery:
		body = b.state(now)
	case message.SlotQuery: // it does not know how a job has ended
		body = message.SlotUsed{ID: r.ID, At: now, Status: protocol.JobStatus{State: protocol.JobWaiting}}
	default:
		panic(fmt.Sprintf("markettest: a batch system gets %s", m.Body.Kind()))
	}
	return m.Reply(protocol.LocalQueue, protocol.Inform, body)
}

// reserve grants a slot once; the same ID gets the same answer.
func (b *Batch) reserve(r message.Reserve) message.Reserved {
	if slot, ok := b.Slots[r.ID]; ok {
		return message.Reserved{ID: r.ID, OK: true, Slot: slot}
	}
	if free := b.free(r.Slot); free < r.Slot.Cores {
		return message.Reserved{ID: r.ID, Reason: protocol.Reason{Code: protocol.CodeBusy, Free: free}}
	}
	b.Slots[r.ID] = r.Slot
	return message.Reserved{ID: r.ID, OK: true, Slot: r.Slot}
}

func (b *Batch) state(now time.Time) message.QueueChanged {
	q := message.QueueChanged{At: now, Capacity: b.Cores}
	for _, id := range slices.Sorted(maps.Keys(b.Slots)) {
		if b.Slots[id].End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: b.Slots[id], Mine: true})
		}
	}
	return q
}

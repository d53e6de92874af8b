package markettest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Batch is a batch system. It reports truthfully, grants every slot that fits, and
// survives crashes of its agent.
type Batch struct {
	Cores int
	Slots map[string]protocol.Slot // reservations, by ID
}

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
	case message.SlotQuery: // it does not know how jobs end
		body = message.SlotUsed{ID: r.ID, At: now, Status: protocol.JobStatus{State: protocol.JobWaiting}}
	default:
		panic(fmt.Sprintf("markettest: a batch system got %s", m.Body.Kind()))
	}
	return m.Reply(protocol.LocalQueue, protocol.Inform, body)
}

// reserve grants a slot once; the same ID gets the same answer.
func (b *Batch) reserve(r message.Reserve) message.Reserved {
	if slot, ok := b.Slots[r.ID]; ok {
		return message.Reserved{ID: r.ID, OK: true, Slot: slot}
	}
	if free := b.Cores - queue.Taken(slices.Collect(maps.Values(b.Slots)), r.Slot); free < r.Slot.Cores {
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

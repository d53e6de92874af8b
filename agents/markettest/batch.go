package markettest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// answers is a local correspondent that does what a message asks at once, whatever happens
// to its agent, and says nothing by itself. A nil body is no answer.
type answers func(now time.Time, m protocol.Message) protocol.Body

// Receive implements sim.Local.
func (a answers) Receive(now time.Time, m protocol.Message) []sim.Later {
	body := a(now, m)
	if body == nil {
		return nil
	}
	return []sim.Later{{After: time.Millisecond, Message: m.Reply(m.Receivers[0], protocol.Inform, body)}}
}

// Advance implements sim.Local.
func (answers) Advance(time.Time) (said []sim.Later, next time.Time) { return nil, time.Time{} }

// Batch is a batch system. It reports truthfully, grants every slot that fits, and
// survives crashes of its agent.
type Batch struct {
	Cores int
	Slots map[string]protocol.Slot // reservations, by ID
}

func (b *Batch) answer(now time.Time, m protocol.Message) protocol.Body {
	switch r := m.Body.(type) {
	case message.Reserve:
		return b.reserve(r)
	case message.Keep:
		slot, ok := b.Slots[r.ID]
		return message.Reserved{ID: r.ID, Kept: true, OK: ok, Slot: slot, Reason: protocol.Reason{Code: protocol.CodeUnknown}}
	case message.Release:
		delete(b.Slots, r.ID)
		return message.Released{ID: r.ID, OK: true}
	case message.QueueQuery:
		return b.state(now)
	case message.SlotQuery: // it does not know how jobs end
		return message.SlotUsed{ID: r.ID, At: now, Status: protocol.JobStatus{State: protocol.JobWaiting}}
	}
	panic(fmt.Sprintf("markettest: a batch system got %s", m.Body.Kind()))
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

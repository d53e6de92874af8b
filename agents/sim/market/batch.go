package market

import (
	"time"

	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Batch is a batch system as a local correspondent in virtual time: it answers
// in order, as slowly as it is, and at times not at all. Any queue.System can be
// behind it.
type Batch struct {
	agent  protocol.AgentID
	system queue.System
	chance sim.Chance
	slow   time.Duration // mean until an answer comes
	short  int           // grants of fewer cores than asked, per thousand
	busy   time.Time
	away   time.Time // until then it answers nothing
	told   time.Time
	dirty  bool

	programs programs
}

// tellGap is between two states that nobody asked for.
const tellGap = 10 * time.Second

// NewBatch puts a system behind an agent. How slow it is, is drawn from a span.
func NewBatch(agent protocol.AgentID, s queue.System, chance sim.Chance, slow sim.Span, short int) *Batch {
	return &Batch{agent: agent, system: s, chance: chance, slow: chance.Skewed(slow), short: short, programs: programs{jobs: map[string]*program{}}}
}

// Away takes the batch system away until an instant of its own clock.
func (b *Batch) Away(until time.Time) { b.away = until }

// Receive carries out a request at once and answers it later.
func (b *Batch) Receive(now time.Time, m protocol.Message) []sim.Later {
	if now.Before(b.away) {
		return nil
	}
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Reserve:
		body = b.reserve(now, r)
	case message.Keep:
		slot, name, why := b.system.Find(now, r.ID)
		body = reserved(message.Reserved{ID: r.ID, Kept: true}, slot, name, why)
	case message.Release:
		body = message.Released{ID: r.ID, OK: b.system.Release(now, r.ID) == nil}
		b.dirty = true
	case message.SlotQuery:
		status := jobsModel().Status(now, r.ID, r.Slot)
		if meter, ok := b.system.(queue.Meter); ok {
			status, _, _ = meter.Used(now, r.ID, r.Slot)
		}
		body = message.SlotUsed{ID: r.ID, At: now, Status: status}
	case message.QueueQuery:
		return b.tell(now)
	default:
		if body = b.request(now, m.Body); body == nil {
			return nil
		}
	}
	return b.say(now, m.Reply(protocol.LocalQueue, protocol.Inform, body))
}

func (b *Batch) reserve(now time.Time, r message.Reserve) message.Reserved {
	slot := r.Slot
	if slot.Cores > 1 && b.chance.Of(b.short) {
		slot.Cores -= 1 + b.chance.N(slot.Cores-1)
	}
	slot, name, why := queue.Ask(b.system, now, message.Reserve{ID: r.ID, Slot: slot, Over: r.Over})
	b.dirty = b.dirty || why == nil
	return reserved(message.Reserved{ID: r.ID}, slot, name, why)
}

func reserved(answer message.Reserved, slot protocol.Slot, name string, why *protocol.Reason) message.Reserved {
	if why != nil {
		answer.Reason = *why
		return answer
	}
	answer.OK, answer.Slot, answer.Batch = true, slot, name
	return answer
}

// Advance lets the system go on, and tells its state if it changed.
func (b *Batch) Advance(now time.Time) ([]sim.Later, time.Time) {
	changed, next := b.system.Advance(now)
	b.dirty = b.dirty || changed
	if now.Before(b.away) {
		return nil, next
	}
	said, later := b.tellJobs(now)
	next = protocol.Earlier(next, later)
	if !b.dirty {
		return said, next
	}
	if due := b.told.Add(tellGap); now.Before(due) {
		return said, protocol.Earlier(next, due)
	}
	return append(said, b.tell(now)...), next
}

// tellJobs tells which jobs have changed.
func (b *Batch) tellJobs(now time.Time) (said []sim.Later, next time.Time) {
	news, next := b.programs.changed(now)
	for _, body := range news {
		said = append(said, b.say(now, b.message(body))...)
	}
	return said, next
}

func (b *Batch) message(body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalQueue, Receivers: []protocol.AgentID{b.agent},
		Protocol: protocol.ProtocolQueue, Body: body,
	}
}

func (b *Batch) tell(now time.Time) []sim.Later {
	state, err := b.system.State(now)
	if err != nil {
		return nil
	}
	b.told, b.dirty = now, false
	return b.say(now, b.message(state))
}

// say answers after everything that was said before.
func (b *Batch) say(now time.Time, m protocol.Message) []sim.Later {
	at := now.Add(b.chance.Around(b.slow))
	if at.Before(b.busy) {
		at = b.busy
	}
	b.busy = at
	return []sim.Later{{After: at.Sub(now), Message: m}}
}

package market

import (
	"time"

	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Batch presents a queue.System as a local correspondent in virtual time: it answers in
// order, after a delay, and sometimes not at all.
type Batch struct {
	agent  protocol.AgentID
	system queue.System
	chance sim.Chance
	slow   time.Duration // mean delay of an answer
	short  int           // grants of fewer cores than requested, per thousand
	busy   time.Time
	away   time.Time // it answers nothing until then
	told   time.Time
	seen   time.Time // the clock, when it was last read
	dirty  bool

	programs programs
}

// tellGap is the least time between two unrequested reports of the state.
const tellGap = 10 * time.Second

// NewBatch connects a system to an agent. Its mean delay is drawn from a span.
func NewBatch(agent protocol.AgentID, s queue.System, chance sim.Chance, slow sim.Span, short int) *Batch {
	return &Batch{agent: agent, system: s, chance: chance, slow: chance.Skewed(slow), short: short, programs: programs{jobs: map[string]*program{}}}
}

// Slowest is the longest delay of an answer.
func (b *Batch) Slowest() time.Duration { return sim.Longest(b.slow) }

// Away makes the batch system unreachable until an instant of its own clock.
func (b *Batch) Away(until time.Time) { b.away = until }

// Receive carries out a request at once and answers it later.
func (b *Batch) Receive(now time.Time, m protocol.Message) []sim.Later {
	b.follow(now)
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

// follow keeps pauses as long as they are when the clock is set back.
func (b *Batch) follow(now time.Time) {
	if back := b.seen.Sub(now); back > 0 {
		b.told, b.busy, b.dirty = b.told.Add(-back), b.busy.Add(-back), true
	}
	b.seen = now
}

// Advance lets the system proceed, and reports its state if it changed.
func (b *Batch) Advance(now time.Time) ([]sim.Later, time.Time) {
	b.follow(now)
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

// tellJobs reports the jobs that have changed.
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

// say sends an answer after all earlier ones.
func (b *Batch) say(now time.Time, m protocol.Message) []sim.Later {
	at := now.Add(b.chance.Around(b.slow))
	if at.Before(b.busy) {
		at = b.busy
	}
	b.busy = at
	return []sim.Later{{After: at.Sub(now), Message: m}}
}

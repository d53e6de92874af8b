// Package queue brings batch systems to the resource agent.
//
// A batch system is a local correspondent: the agent sends it Reserve, Keep,
// Release and QueueQuery, and hears Reserved, Released, QueueChanged and, when the
// batch system cannot be asked, QueueDown. A Driver may be as slow as its batch
// system; the agent never waits for it. Every driver keeps the same promises,
// which package queuetest tests:
//
//   - Requests are answered in order. Reserving again under the same ID and slot
//     is granted again, releasing what is not there is done, and so a request can
//     be repeated after a crash.
//   - What is granted survives a restart of the driver and of the machine it runs
//     on, until its end or its release, and no core is granted twice.
//   - A QueueChanged tells the state after every answer that was delivered before
//     it.
//
// Loop is the goroutine that drivers have in common; what differs is a System, and
// whether it has Jobs: the power to run programs in what it has reserved.
package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Driver is a batch system as the agent's correspondent.
type Driver interface {
	// Send queues a request and returns at once.
	Send(m protocol.Message)
	// Run answers requests by deliver until ctx is done, whose error it returns,
	// or until the batch system cannot be used at all. deliver may block.
	Run(ctx context.Context, deliver func(m protocol.Message)) error
}

// System is what a Loop drives. One goroutine calls it, with rising times.
type System interface {
	// Reserve blocks a slot under an ID, durably, and returns it as it is then,
	// with the batch system's name for it; or why not.
	Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason)
	// Find reads a reservation back.
	Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason)
	// Release frees a reservation, durably. One that is not there is released.
	Release(now time.Time, id string) *protocol.Reason
	// State is the batch system as it is now.
	State(now time.Time) (message.QueueChanged, error)
	// Advance lets what is due happen, and returns whether anything changed and
	// when it wants to be called next (zero: at the next request).
	Advance(now time.Time) (changed bool, next time.Time)
}

// Overlay is a System that can lay a slot over jobs which run or wait, durably: it
// keeps the cores from jobs that start later. If those that run have not left them
// when the slot begins, it forgets the reservation.
type Overlay interface {
	// ReserveOver is Reserve over jobs; the cores of other reservations stay theirs.
	ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason)
}

// Ask has a System reserve what it is asked for.
func Ask(s System, now time.Time, r message.Reserve) (protocol.Slot, string, *protocol.Reason) {
	if !r.Over {
		return s.Reserve(now, r.ID, r.Slot)
	}
	o, ok := s.(Overlay)
	if !ok {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeForbidden, Note: "the driver cannot reserve over jobs"}
	}
	return o.ReserveOver(now, r.ID, r.Slot)
}

// Bounds of a Loop.
const (
	// MaxRequests wait for the batch system. More are dropped: the agent asks
	// again for a release, and a hold that was not granted ends by itself.
	MaxRequests = 4096
	// MinGap is between two QueueChanged that nobody asked for, and telling the
	// state takes at most one in gapShare of the time.
	MinGap   = time.Second
	gapShare = 20
	// maxRest is how long a Loop sleeps at most, so that a changed clock is seen.
	maxRest = time.Minute
	// MaxID bounds the ID of a reservation in bytes.
	MaxID = protocol.MaxName
)

// Loop is a Driver around a System.
type Loop struct {
	agent    protocol.AgentID // whose batch system it is
	system   System
	now      func() time.Time
	log      *slog.Logger
	requests chan protocol.Message
	down     time.Time     // since when the state cannot be read; zero: it can
	told     time.Time     // when the state was
	gap      time.Duration // until it is told again without being asked
	watch    watch         // the jobs that run
}

// NewLoop makes a Loop; Run starts it.
func NewLoop(agent protocol.AgentID, s System, now func() time.Time, log *slog.Logger) *Loop {
	l := &Loop{agent: agent, system: s, now: now, log: log, requests: make(chan protocol.Message, MaxRequests)}
	l.watch = newWatch(s)
	return l
}

// Send queues a request; see MaxRequests.
func (l *Loop) Send(m protocol.Message) {
	select {
	case l.requests <- m:
	default:
		l.log.Warn("batch system: too many requests wait, one is dropped", "kind", m.Body.Kind(), "waiting", MaxRequests)
	}
}

// Run serves until ctx is done.
func (l *Loop) Run(ctx context.Context, deliver func(m protocol.Message)) error {
	_, next := l.system.Advance(l.now())
	l.tell(deliver)
	dirty := false // the state has changed since it was told
	timer := time.NewTimer(l.rest(next, dirty))
	defer timer.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-l.requests:
			var changes bool
			changes, asked = l.answer(m, deliver)
			dirty = dirty || changes
		case <-timer.C:
		}
		changed, due := l.system.Advance(l.now())
		dirty, next = dirty || changed, protocol.Earlier(due, l.look(deliver))
		if asked || dirty && l.now().Sub(l.told) >= l.gap {
			l.tell(deliver)
			dirty = false
		}
		timer.Reset(l.rest(next, dirty))
	}
}

// rest is how long nothing has to be done.
func (l *Loop) rest(next time.Time, dirty bool) time.Duration {
	now := l.now()
	rest := maxRest
	if !next.IsZero() {
		rest = min(rest, next.Sub(now))
	}
	if dirty {
		rest = min(rest, l.told.Add(l.gap).Sub(now))
	}
	return max(rest, time.Millisecond)
}

// tell delivers the state.
func (l *Loop) tell(deliver func(m protocol.Message)) {
	begun := l.now()
	state, err := l.system.State(begun)
	l.told = l.now()
	l.gap = max(MinGap, gapShare*l.told.Sub(begun))
	if err != nil {
		l.fail(begun, err, deliver)
		return
	}
	if !l.down.IsZero() {
		l.log.Info("batch system: its state can be read again", "after", begun.Sub(l.down).Round(time.Second))
		l.down = time.Time{}
	}
	deliver(l.message(protocol.Inform, state))
}

// fail tells that the state cannot be read, and logs it once.
func (l *Loop) fail(now time.Time, err error, deliver func(m protocol.Message)) {
	if l.down.IsZero() {
		l.down = now
		l.log.Error("batch system: its state cannot be read; what was promised stands", "err", err)
	}
	deliver(l.message(protocol.Inform, message.QueueDown{Since: l.down, Why: OneLine([]byte(err.Error()))}))
}

func (l *Loop) message(p protocol.Performative, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: protocol.LocalQueue, Receivers: []protocol.AgentID{l.agent},
		Protocol: protocol.ProtocolQueue, Body: body,
	}
}

// answer carries out one request. It reports whether the state changed and
// whether it was asked for.
func (l *Loop) answer(m protocol.Message, deliver func(m protocol.Message)) (changed, asked bool) {
	now := l.now()
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Reserve:
		body, changed = l.reserve(now, r)
	case message.Keep:
		body = l.keep(now, r)
	case message.Release:
		body, changed = l.release(now, r)
		asked = changed && l.gap <= MinGap // freed cores are for sale at once, if telling is cheap
	case message.SlotQuery:
		used, ok := l.used(now, r)
		if !ok {
			return false, false
		}
		body = used
	case message.QueueQuery:
		return false, true
	case message.Submit, message.Signal, message.JobQuery:
		body = l.job(now, r)
	default:
		l.log.Warn("batch system: a request that it does not know is dropped", "kind", m.Body.Kind())
		return false, false
	}
	answer := l.message(protocol.Inform, body)
	answer.Conversation, answer.InReplyTo = m.Conversation, m.ReplyWith
	deliver(answer)
	return changed, asked
}

func (l *Loop) reserve(now time.Time, r message.Reserve) (message.Reserved, bool) {
	answer := message.Reserved{ID: r.ID}
	if err := check(now, r.ID, r.Slot); err != nil {
		answer.Reason = protocol.Reason{Code: protocol.CodeMalformed, Unit: protocol.AllUnits, Note: err.Error()}
		return answer, false
	}
	slot, name, why := Ask(l.system, now, r)
	return reserved(answer, slot, name, why), why == nil
}

// check refuses what no batch system could be asked.
func check(now time.Time, id string, slot protocol.Slot) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("reservation: ID of %d bytes, want 1..%d", len(id), MaxID)
	}
	if err := slot.Validate(); err != nil {
		return fmt.Errorf("reservation %s: %w", id, err)
	}
	if !slot.End.After(now) {
		return fmt.Errorf("reservation %s: the slot was over at %s", id, slot.End.Format(time.RFC3339))
	}
	return nil
}

// keep reads a reservation back. Reservations outlast every doubt, because they
// end only with their slot or when they are released.
func (l *Loop) keep(now time.Time, r message.Keep) message.Reserved {
	slot, name, why := l.system.Find(now, r.ID)
	return reserved(message.Reserved{ID: r.ID, Kept: true}, slot, name, why)
}

func reserved(answer message.Reserved, slot protocol.Slot, name string, why *protocol.Reason) message.Reserved {
	if why != nil {
		answer.Reason = *why
		answer.Reason.Unit = protocol.AllUnits
		return answer
	}
	answer.OK, answer.Slot, answer.Batch = true, slot, name
	return answer
}

func (l *Loop) release(now time.Time, r message.Release) (message.Released, bool) {
	if why := l.system.Release(now, r.ID); why != nil {
		return message.Released{ID: r.ID, Reason: *why}, false
	}
	return message.Released{ID: r.ID, OK: true}, true
}

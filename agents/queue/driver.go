// Package queue brings batch systems to the resource agent.
//
// A batch system is a local correspondent: the agent sends it Reserve, Keep, Release and
// QueueQuery, and receives Reserved, Released, QueueChanged and, while the batch system cannot be
// reached, QueueDown. A Driver may be as slow as its batch system; the agent never waits for it.
// Every driver keeps the same promises, which package queuetest tests:
//
//   - It answers requests in order. Reserving the same slot again under its ID
//     succeeds, and so does releasing an unknown ID, so that the agent can repeat a
//     request after a crash.
//   - A grant survives a restart of the driver and of its machine, until its end or
//     its release, and no core is granted twice.
//   - A QueueChanged shows the state after every answer delivered before it.
//
// Loop is the goroutine that drivers have in common. They differ in their System, and
// in whether it has Jobs: the ability to run programs in its reservations.
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
	// Reserve blocks a slot under an ID, durably. It returns the slot as granted and
	// the batch system's name for it, or why not.
	Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason)
	// Find reads a reservation back.
	Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason)
	// Release frees a reservation, durably. Releasing an unknown one succeeds.
	Release(now time.Time, id string) *protocol.Reason
	// State is the batch system as it is now.
	State(now time.Time) (message.QueueChanged, error)
	// Advance does what is due. It returns whether anything changed, and when to call
	// it next (zero: at the next request).
	Advance(now time.Time) (changed bool, next time.Time)
}

// Overlay is a System that can reserve a slot over running or waiting jobs, durably. It
// keeps the cores from jobs that start later, and drops the reservation if running jobs
// still occupy them when the slot begins.
type Overlay interface {
	// ReserveOver is Reserve over jobs; other reservations keep their cores.
	ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason)
}

// Noded is a System that may reserve whole nodes, so that nobody else has a core of them.
type Noded interface {
	// Whole reports whether it does. Its State then lists the free nodes.
	Whole() bool
}

// Ask passes a request to a System.
func Ask(s System, now time.Time, r message.Reserve) (protocol.Slot, string, *protocol.Reason) {
	if n, ok := s.(Noded); r.Slot.Nodes > 0 && (!ok || r.Over || !n.Whole()) {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeSize, Note: "the driver reserves single cores, not whole nodes"}
	}
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
	// MaxRequests wait for the batch system. More are dropped: the agent repeats a
	// release, and a hold without a grant ends by itself.
	MaxRequests = 4096
	// MinGap is the time between two unrequested QueueChanged, and reading the state
	// takes at most one part in gapShare of the time.
	MinGap   = time.Second
	gapShare = 20
	// maxRest bounds the sleep of a Loop, so that it notices a changed clock.
	maxRest = time.Minute
	// MaxID bounds the ID of a reservation in bytes.
	MaxID = protocol.MaxName
)

// Loop is a Driver around a System.
type Loop struct {
	agent     protocol.AgentID // the batch system's owner
	system    System
	now       func() time.Time
	log       *slog.Logger
	requests  chan *protocol.Message // pointers: room for MaxRequests messages would take 0.6 MB
	down      time.Time              // since when the state cannot be read; zero: it can
	published time.Time              // when the state was delivered
	gap       time.Duration          // until an unrequested QueueChanged
	watch     watch                  // the jobs that run
}

// NewLoop makes a Loop; Run starts it.
func NewLoop(agent protocol.AgentID, s System, now func() time.Time, log *slog.Logger) *Loop {
	l := &Loop{agent: agent, system: s, now: now, log: log, requests: make(chan *protocol.Message, MaxRequests)}
	l.watch = newWatch(s)
	return l
}

// Send queues a request; see MaxRequests.
func (l *Loop) Send(m protocol.Message) {
	select {
	case l.requests <- &m:
	default:
		l.log.Warn("batch system: dropped a request because too many wait", "kind", m.Body.Kind(), "waiting", MaxRequests)
	}
}

// Run serves until ctx is done.
func (l *Loop) Run(ctx context.Context, deliver func(m protocol.Message)) error {
	_, next := l.system.Advance(l.now())
	l.publish(deliver)
	dirty := false // the state has changed since it was delivered
	timer := time.NewTimer(l.rest(next, dirty))
	defer timer.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-l.requests:
			var changes bool
			changes, asked = l.answer(*m, deliver)
			dirty = dirty || changes
		case <-l.watch.ended:
			l.watch.pace.at = l.now()
		case <-timer.C:
		}
		changed, due := l.system.Advance(l.now())
		dirty, next = dirty || changed, protocol.Earlier(due, l.look(deliver))
		if asked || dirty && l.now().Sub(l.published) >= l.gap {
			l.publish(deliver)
			dirty = false
		}
		timer.Reset(l.rest(next, dirty))
	}
}

// rest is the time until something is due.
func (l *Loop) rest(next time.Time, dirty bool) time.Duration {
	now := l.now()
	rest := maxRest
	if !next.IsZero() {
		rest = min(rest, next.Sub(now))
	}
	if dirty {
		rest = min(rest, l.published.Add(l.gap).Sub(now))
	}
	return max(rest, time.Millisecond)
}

func (l *Loop) publish(deliver func(m protocol.Message)) {
	begun := l.now()
	state, err := l.system.State(begun)
	l.published = l.now()
	l.gap = max(MinGap, gapShare*l.published.Sub(begun))
	if err != nil {
		l.fail(begun, err, deliver)
		return
	}
	if !l.down.IsZero() {
		l.log.Info("batch system: its state is readable again", "after", begun.Sub(l.down).Round(time.Second))
		l.down = time.Time{}
	}
	deliver(l.message(protocol.Inform, state))
}

// fail reports that the state cannot be read, and logs it once.
func (l *Loop) fail(now time.Time, err error, deliver func(m protocol.Message)) {
	if l.down.IsZero() {
		l.down = now
		l.log.Error("batch system: cannot read its state; reservations stand", "err", err)
	}
	deliver(l.message(protocol.Inform, message.QueueDown{Since: l.down, Why: OneLine([]byte(err.Error()))}))
}

func (l *Loop) message(p protocol.Performative, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: protocol.LocalQueue, Receivers: []protocol.AgentID{l.agent},
		Protocol: protocol.ProtocolQueue, Body: body,
	}
}

// answer carries out one request. It reports whether the state changed, and
// whether the agent asked for it.
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
		asked = changed && l.gap <= MinGap // freed cores are for sale at once, if reading the state is cheap
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
		l.log.Warn("batch system: dropped an unknown request", "kind", m.Body.Kind())
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

// check refuses requests that no batch system could serve.
func check(now time.Time, id string, slot protocol.Slot) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("reservation: ID of %d bytes, want 1..%d", len(id), MaxID)
	}
	if err := slot.Validate(); err != nil {
		return fmt.Errorf("reservation %s: %w", id, err)
	}
	if !slot.End.After(now) {
		return fmt.Errorf("reservation %s: the slot ended at %s", id, slot.End.UTC().Format(time.RFC3339))
	}
	return nil
}

// keep reads a reservation back. It needs no extension, since reservations end only
// with their slot or by a release.
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

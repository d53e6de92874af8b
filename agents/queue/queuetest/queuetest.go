// Package queuetest is the contract of every batch-system driver.
//
// A driver's test calls Run with a function that opens the driver on an idle machine.
// Run then tests every promise of package queue through the driver's messages.
package queuetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Agent owns the tested driver.
const Agent protocol.AgentID = "seller@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// Open makes the driver of an idle machine whose state is in dir. Opening the
// same dir again gives the same machine after a restart.
type Open func(tb testing.TB, dir string) queue.Driver

// patience bounds the wait for an answer, so that a lost one fails the test.
const patience = 20 * time.Second

type bench struct {
	testing.TB
	driver   queue.Driver
	arrived  chan protocol.Message
	cancel   context.CancelFunc
	stopped  chan struct{}
	begin    time.Time // of the slots: far enough ahead
	capacity int
	fixed    bool // see FixedCores
}

// start runs a driver until the test or stop ends it, and waits for the first state.
func start(tb testing.TB, open Open, dir string) *bench {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{
		TB: tb, driver: open(tb, dir), arrived: make(chan protocol.Message, 1024), cancel: cancel,
		stopped: make(chan struct{}), begin: time.Now().Add(24 * time.Hour).Truncate(time.Hour).UTC(),
	}
	go func() {
		defer close(b.stopped)
		_ = b.driver.Run(ctx, func(m protocol.Message) {
			select {
			case b.arrived <- m:
			case <-ctx.Done():
			}
		})
	}()
	tb.Cleanup(b.stop)
	b.capacity = await[message.QueueChanged](b).Capacity
	if b.capacity < 1 {
		tb.Fatalf("the first state has %d cores", b.capacity)
	}
	return b
}

func (b *bench) stop() {
	b.cancel()
	<-b.stopped
}

// await returns the next message of a kind and skips others.
func await[B protocol.Body](b *bench) B {
	b.Helper()
	limit := time.After(patience)
	for {
		select {
		case m := <-b.arrived:
			if body, ok := m.Body.(B); ok {
				if m.Sender != protocol.LocalQueue || m.Protocol != protocol.ProtocolQueue {
					b.Fatalf("%s comes from %s under %q", body.Kind(), m.Sender, m.Protocol)
				}
				return body
			}
		case <-limit:
			var none B
			b.Fatalf("no %s within %s", none.Kind(), patience)
		}
	}
}

func (b *bench) send(p protocol.Performative, body protocol.Body) {
	b.driver.Send(protocol.Message{
		Performative: p, Sender: Agent, Receivers: []protocol.AgentID{protocol.LocalQueue},
		Protocol: protocol.ProtocolQueue, Body: body,
	})
}

// slot has cores from a number of hours after begin, for some hours.
func (b *bench) slot(from, hours, cores int) protocol.Slot {
	start := b.begin.Add(time.Duration(from) * time.Hour)
	return protocol.Slot{Start: start, End: start.Add(time.Duration(hours) * time.Hour), Cores: cores}
}

func (b *bench) reserve(id string, slot protocol.Slot) message.Reserved {
	b.Helper()
	b.send(protocol.Request, message.Reserve{ID: id, Slot: slot})
	return b.answer(id, await[message.Reserved](b), false)
}

func (b *bench) keep(id string, slot protocol.Slot) message.Reserved {
	b.Helper()
	b.send(protocol.Request, message.Keep{ID: id, Slot: slot})
	return b.answer(id, await[message.Reserved](b), true)
}

func (b *bench) answer(id string, r message.Reserved, kept bool) message.Reserved {
	b.Helper()
	if r.ID != id || r.Kept != kept {
		b.Fatalf("the answer is about %q, kept %v; want %q, kept %v", r.ID, r.Kept, id, kept)
	}
	if r.OK == (r.Reason.Code != "") {
		b.Fatalf("%q: OK %v with reason %q", id, r.OK, r.Reason.Code)
	}
	return r
}

func (b *bench) release(id string) message.Released {
	b.Helper()
	b.send(protocol.Request, message.Release{ID: id})
	r := await[message.Released](b)
	if r.ID != id {
		b.Fatalf("the answer is about %q, want %q", r.ID, id)
	}
	return r
}

// state asks for the current state. It skips earlier ones: drivers answer in order, so
// these arrive before the answer to a request that is refused without the system.
func (b *bench) state() message.QueueChanged {
	b.Helper()
	b.send(protocol.Request, message.Reserve{})
	if r := await[message.Reserved](b); r.OK || r.ID != "" {
		b.Fatalf("a reservation without a name: %+v", r)
	}
	b.send(protocol.QueryRef, message.QueueQuery{})
	return await[message.QueueChanged](b)
}

func (b *bench) granted(id string, slot protocol.Slot) {
	b.Helper()
	r := b.reserve(id, slot)
	if !r.OK {
		b.Fatalf("%s for %d cores is refused: %+v", id, slot.Cores, r.Reason)
	}
	b.same(r.Slot, slot)
}

func (b *bench) refused(id string, slot protocol.Slot, codes ...protocol.Code) {
	b.Helper()
	r := b.reserve(id, slot)
	if r.OK || !slices.Contains(codes, r.Reason.Code) {
		b.Fatalf("%s for %d cores: OK %v, reason %+v; want one of %v", id, slot.Cores, r.OK, r.Reason, codes)
	}
}

func (b *bench) same(got, want protocol.Slot) {
	b.Helper()
	if !queue.Equal(got, want) {
		b.Fatalf("the slot is %+v, want %+v", got, want)
	}
}

// lists fails unless the state lists exactly these reservations as the agent's.
func (b *bench) lists(want map[string]protocol.Slot) {
	b.Helper()
	got := map[string]protocol.Slot{}
	for _, r := range b.state().Reservations {
		if r.Mine {
			got[r.ID] = r.Slot
		}
	}
	if len(got) != len(want) {
		b.Fatalf("the state lists %v, want %v", got, want)
	}
	for id, slot := range want {
		b.same(got[id], slot)
	}
}

// Package calendar knows how many cores of a resource can still be promised, and
// when: the free cores that the batch system foresees (a workload.Profile in Unix
// seconds), less what the resource has promised or sold and the batch system does
// not show yet.
//
// It decides nothing and never reads a clock. Slots have nanoseconds and profiles
// have seconds: whatever is taken is rounded outward and whatever is asked for
// too, so that no core is promised twice. Queries over 100,000 steps take
// microseconds.
package calendar

import (
	"errors"
	"fmt"
	"time"

	"ramp/agents/workload"
	"ramp/protocol"
)

// MaxSlots bounds the resource's own slots; more are refused with ErrFull.
const MaxSlots = 1 << 16

// Why a slot cannot be added.
var (
	ErrFull   = errors.New("the calendar is full")
	ErrExists = errors.New("the calendar has a slot of that name")
)

// Calendar is free cores over time. It is not safe for concurrent use.
type Calendar struct {
	capacity int
	free     *workload.Profile // with the own slots taken off
	own      map[string]entry
}

// entry is a slot of the resource's own, in whole seconds.
type entry struct {
	start, end int64
	cores      int
	shown      bool // the profile has it already
}

// New is the calendar of an idle machine, from an instant on.
func New(capacity int, from time.Time) *Calendar {
	return &Calendar{
		capacity: capacity,
		free:     workload.NewProfile(from.Unix(), capacity),
		own:      map[string]entry{},
	}
}

// Capacity is the number of cores of the whole machine.
func (c *Calendar) Capacity() int { return c.capacity }

// Len is the number of own slots.
func (c *Calendar) Len() int { return len(c.own) }

// Renew takes what the batch system foresees now, in Unix seconds, in place of
// what it foresaw before. The own slots named in shown are among it already; the
// others are taken off as well. The calendar keeps a copy of its own.
func (c *Calendar) Renew(capacity int, foreseen *workload.Profile, shown []string) {
	c.capacity = capacity
	c.free = foreseen.Clone()
	seen := make(map[string]bool, len(shown))
	for _, id := range shown {
		seen[id] = true
	}
	for id, e := range c.own { // in any order: the sum is the same
		e.shown = seen[id]
		c.own[id] = e
		if !e.shown {
			c.free.Add(e.start, e.end, -e.cores)
		}
	}
}

// Add takes a slot off the free cores. It does not ask whether they are free:
// what is promised stays promised; ask Free first. Errors: an invalid slot,
// ErrExists, ErrFull.
func (c *Calendar) Add(id string, slot protocol.Slot) error {
	if err := slot.Validate(); err != nil {
		return fmt.Errorf("calendar: %s: %w", id, err)
	}
	if _, ok := c.own[id]; ok {
		return fmt.Errorf("calendar: %s: %w", id, ErrExists)
	}
	if len(c.own) == MaxSlots {
		return fmt.Errorf("calendar: %s: %d slots: %w", id, MaxSlots, ErrFull)
	}
	e := entry{start: floor(slot.Start), end: ceil(slot.End), cores: slot.Cores}
	c.own[id] = e
	c.free.Add(e.start, e.end, -e.cores)
	return nil
}

// Remove gives a slot's cores back and reports whether it was there. The cores of
// a slot that the batch system shows come back only when it shows them no more.
func (c *Calendar) Remove(id string) bool {
	e, ok := c.own[id]
	if !ok {
		return false
	}
	delete(c.own, id)
	if !e.shown {
		c.free.Add(e.start, e.end, e.cores)
	}
	return true
}

// Forget drops what is before now: the past of the profile, and own slots that
// are over.
func (c *Calendar) Forget(now time.Time) {
	for id, e := range c.own {
		if e.end <= now.Unix() {
			delete(c.own, id)
		}
	}
	c.free.Forget(now.Unix())
}

// floor and ceil are the whole second not after t and not before it.
func floor(t time.Time) int64 { return t.Unix() }

func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

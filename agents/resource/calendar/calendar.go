// Package calendar knows how many cores of a resource can still be promised, and
// when: the batch system's forecast of free cores (a workload.Profile in Unix seconds),
// minus the resource's own slots that the batch system does not show yet.
//
// It decides nothing and never reads a clock. Slots have nanoseconds and profiles
// have seconds: both occupied and requested times are rounded outward, so that no core
// is promised twice. Queries over 100,000 steps take microseconds.
package calendar

import (
	"errors"
	"fmt"
	"maps"
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

// Calendar owns the free cores over time. It is not safe for concurrent use.
type Calendar struct {
	capacity int
	free     *workload.Profile // without the own slots
	own      map[string]entry
}

// entry is a slot of the resource's own, in whole seconds.
type entry struct {
	start, end int64
	cores      int
	shown      bool // the profile includes it
}

// New is the calendar of an idle machine from an instant on.
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

// Renew replaces the batch system's forecast, in Unix seconds. It includes the own slots
// named in shown; Renew subtracts the others. The calendar copies the profile.
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

// Add subtracts a slot from the free cores. It does not check that they are free, since a promise
// stands in any case; ask Free first. Errors: an invalid slot, ErrExists, ErrFull.
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

// Remove frees a slot and reports whether it existed. The cores of a slot that the batch
// system shows become free when it no longer shows them.
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

// Forget drops the past: steps of the profile, and own slots that have ended.
func (c *Calendar) Forget(now time.Time) {
	maps.DeleteFunc(c.own, func(_ string, e entry) bool { return e.end <= now.Unix() })
	c.free.Forget(now.Unix())
}

func floor(t time.Time) int64 { return t.Unix() }

func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

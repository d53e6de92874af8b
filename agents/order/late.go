package order

import (
	"fmt"
	"sync"
	"time"

	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// LateAfter is how long after a slot its site may take to report how the program ended.
const LateAfter = 30 * time.Second

// Lateness reports each unit of a run whose site is late, once.
type Lateness struct {
	Say func(u message.RunUnit)

	mu    sync.Mutex
	alarm *time.Timer
	units []message.RunUnit

	Reported map[string]bool // by launch
}

// Expect takes the current state of the units.
func (l *Lateness) Expect(now time.Time, units []message.RunUnit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.units = units
	l.look(now)
}

// look reports the units that are late by now, and sets the alarm for the next one.
func (l *Lateness) look(now time.Time) {
	l.stop()
	var next time.Time
	for _, u := range l.units {
		at := u.Slot.End.Add(LateAfter)
		switch {
		case l.Reported[u.Launch] || u.Lost || u.Status.Stage.Over() || u.Status.Stage == message.StageCollecting:
		case now.Before(at):
			next = protocol.Earlier(next, at)
		default:
			l.Reported[u.Launch] = true
			l.Say(u)
		}
	}
	if next.IsZero() {
		return
	}
	l.alarm = time.AfterFunc(next.Sub(now), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.look(time.Now())
	})
}

func (l *Lateness) stop() {
	if l.alarm != nil {
		l.alarm.Stop()
	}
}

// End stops the alarm.
func (l *Lateness) End() { l.Expect(time.Time{}, nil) }

// LateWords say that a site is late.
func LateWords(u message.RunUnit) string {
	return fmt.Sprintf("the slot ended at %s, and %s has not reported how the program ended; asking until %s",
		words.At(u.Slot.End), u.Resource, words.At(user.AskedUntil(u)))
}

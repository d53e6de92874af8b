package user

import (
	"fmt"
	"sync"
	"time"

	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// lateAfter is how long after a slot its site may take to report how the program ended.
const lateAfter = 30 * time.Second

// lateness reports each unit of a run whose site is late, once.
type lateness struct {
	say func(u message.RunUnit)

	mu    sync.Mutex
	alarm *time.Timer
	units []message.RunUnit

	reported map[string]bool // by launch
}

// expect takes the current state of the units.
func (l *lateness) expect(now time.Time, units []message.RunUnit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.units = units
	l.look(now)
}

// look reports the units that are late by now, and sets the alarm for the next one.
func (l *lateness) look(now time.Time) {
	l.stop()
	var next time.Time
	for _, u := range l.units {
		at := u.Slot.End.Add(lateAfter)
		switch {
		case l.reported[u.Launch] || u.Lost || u.Status.Stage.Over() || u.Status.Stage == message.StageCollecting:
		case now.Before(at):
			next = protocol.Earlier(next, at)
		default:
			l.reported[u.Launch] = true
			l.say(u)
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

func (l *lateness) stop() {
	if l.alarm != nil {
		l.alarm.Stop()
	}
}

// end stops the alarm.
func (l *lateness) end() { l.expect(time.Time{}, nil) }

func lateWords(u message.RunUnit) string {
	return fmt.Sprintf("the slot ended at %s UTC, and %s has not reported how the program ended; asking until %s UTC",
		words.Timestamp(u.Slot.End), u.Resource, words.Timestamp(user.AskedUntil(u)))
}

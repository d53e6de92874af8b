package command

import (
	"fmt"
	"sync"
	"time"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// lateAfter is how long after a slot its site may take to tell how a program ended.
const lateAfter = 30 * time.Second

// lateness says once of each unit of a run that its site is late.
type lateness struct {
	say func(u message.RunUnit)

	mu    sync.Mutex
	alarm *time.Timer
	units []message.RunUnit
	told  map[string]bool // by launch
}

// expect takes how the units stand now.
func (l *lateness) expect(now time.Time, units []message.RunUnit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.units = units
	l.look(now)
}

// look tells what is late by now, and waits for what will be next.
func (l *lateness) look(now time.Time) {
	l.stop()
	var next time.Time
	for _, u := range l.units {
		at := u.Slot.End.Add(lateAfter)
		switch {
		case l.told[u.Launch] || u.Lost || u.Status.Stage.Over() || u.Status.Stage == message.StageCollecting:
		case now.Before(at):
			next = protocol.Earlier(next, at)
		default:
			l.told[u.Launch] = true
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

// end tells no more.
func (l *lateness) end() { l.expect(time.Time{}, nil) }

func lateWords(u message.RunUnit) string {
	return fmt.Sprintf("the slot was over at %s UTC, and %s has not told yet how it ended; it is asked until %s UTC",
		secondTime(u.Slot.End), u.Resource, secondTime(user.AskedUntil(u)))
}

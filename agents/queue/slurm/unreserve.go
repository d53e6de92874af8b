package slurm

import (
	"maps"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Times of a release that finds jobs.
const (
	endingTries = 25
	endingPause = 200 * time.Millisecond
)

// deletion is a reservation that goes as soon as its jobs have ended.
type deletion struct {
	tries int
	at    time.Time // of the next
}

// unreserve deletes a reservation. Jobs that run in it are cancelled first, and
// killed the second time that is asked for; the deletion is then tried again and
// again by Advance, while others are served, and the role asks again and finds
// it done.
func (b *batch) unreserve(now time.Time, id string) *protocol.Reason {
	name := b.mark.Name(id)
	err := b.remove(name)
	switch {
	case err == nil:
		b.forget(name)
		return nil
	case !says(err, saysInUse):
		return queue.Unavailable(err)
	}
	if err := b.cancel(name); err != nil {
		return queue.Unavailable(err)
	}
	b.deleting[name] = deletion{at: now.Add(endingPause)}
	return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "the jobs in the reservation are ending"}
}

// forget drops what is remembered of a reservation that is gone.
func (b *batch) forget(name string) {
	delete(b.ends, name)
	delete(b.ending, name)
	delete(b.deleting, name)
}

// deleteDue tries the deletions that are due, and returns whether one was done
// and when the next is due. One that is tried too often waits for the role.
func (b *batch) deleteDue(now time.Time) (done bool, next time.Time) {
	for _, name := range slices.Sorted(maps.Keys(b.deleting)) {
		d := b.deleting[name]
		if !d.at.After(now) {
			switch err := b.remove(name); {
			case err == nil:
				b.forget(name)
				b.usable, done = false, true
				continue
			case d.tries == endingTries:
				delete(b.deleting, name)
				continue
			}
			d.tries, d.at = d.tries+1, now.Add(endingPause)
			b.deleting[name] = d
		}
		next = protocol.Earlier(next, d.at)
	}
	return done, next
}

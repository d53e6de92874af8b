package slurm

import (
	"log/slog"
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

// slots owns the ends of our slots: when each is over, and which reservations are
// being deleted. All maps are by Slurm's name of the slot.
type slots struct {
	slow     cluster
	hold     Hold
	pause    time.Duration // before a failed cancellation is tried again
	log      *slog.Logger
	ends     map[string]time.Time
	ending   map[string]int      // cancellations of a reservation's jobs so far
	deleting map[string]deletion // reservations to delete once their jobs have ended
}

// deletion is a reservation to delete as soon as its jobs have ended.
type deletion struct {
	tries int
	at    time.Time // of the next
}

func newSlots(cfg Config, slow cluster) *slots {
	return &slots{
		slow: slow, hold: cfg.Hold, pause: cfg.Poll, log: cfg.Slog,
		ends: map[string]time.Time{}, ending: map[string]int{}, deleting: map[string]deletion{},
	}
}

// learn remembers when our slots end: Slurm forgets a reservation at its end,
// and lets its jobs run on for a while.
func (s *slots) learn(v *view) {
	for _, h := range v.held {
		if h.mine {
			s.ends[h.name] = h.slot.End
		}
	}
}

// next returns when the first slot ends, or its cancellation is tried again.
func (s *slots) next() (at time.Time) {
	for _, end := range s.ends {
		at = protocol.Earlier(at, end)
	}
	return at
}

// cancelEnded cancels the jobs in slots that are over, and reports whether Slurm
// accepted any. A failed cancellation is tried again after a pause.
func (s *slots) cancelEnded(now time.Time) (changed bool) {
	for name, end := range s.ends {
		if end.After(now) {
			continue
		}
		if err := s.cancelSlot(name); err != nil {
			s.log.Warn("slurm: cannot cancel the jobs of a slot that is over; trying again", "reservation", name, "err", err)
			s.ends[name] = now.Add(s.pause)
			continue
		}
		delete(s.ends, name)
		delete(s.ending, name)
		changed = true
	}
	return changed
}

// cancelSlot ends the jobs of a slot that is over.
func (s *slots) cancelSlot(name string) error {
	if s.hold == HoldReservation {
		return s.cancel(name)
	}
	_, err := s.slow.run("scancel", "--quiet", "--name="+name)
	return err
}

// cancel ends the jobs of a reservation, with SIGKILL from the second time on.
// Signals reach running jobs only; waiting jobs are cancelled in any case.
func (s *slots) cancel(name string) error {
	args := []string{"--quiet", "--reservation=" + name}
	if s.ending[name] > 0 {
		args = append(args, "--signal=KILL", "--full")
	}
	s.ending[name]++
	_, err := s.slow.run("scancel", args...)
	return err
}

// release deletes a reservation. If jobs run in it, release cancels them, and
// deleteDue then retries the deletion; the role asks again and finds it done.
func (s *slots) release(now time.Time, name string) *protocol.Reason {
	err := s.remove(name)
	switch {
	case err == nil:
		s.forget(name)
		return nil
	case !says(err, saysInUse):
		return queue.Unavailable(err)
	}
	if err := s.cancel(name); err != nil {
		return queue.Unavailable(err)
	}
	s.deleting[name] = deletion{at: now.Add(endingPause)}
	return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "the jobs in the reservation are ending"}
}

// remove deletes a reservation, or finds that Slurm has none of that name.
func (s *slots) remove(name string) error {
	_, err := s.slow.run("scontrol", "delete", "ReservationName="+name)
	if says(err, saysInvalid) || says(err, saysNone) {
		return nil
	}
	return err
}

func (s *slots) forget(name string) {
	delete(s.ends, name)
	delete(s.ending, name)
	delete(s.deleting, name)
}

// deleteDue tries the deletions that are due. It reports whether one succeeded, and
// when the next is due. After endingTries it leaves a reservation to the role.
func (s *slots) deleteDue(now time.Time) (done bool, next time.Time) {
	for _, name := range slices.Sorted(maps.Keys(s.deleting)) {
		d := s.deleting[name]
		if !d.at.After(now) {
			switch err := s.remove(name); {
			case err == nil:
				s.forget(name)
				done = true
				continue
			case d.tries == endingTries:
				delete(s.deleting, name)
				continue
			}
			d.tries, d.at = d.tries+1, now.Add(endingPause)
			s.deleting[name] = d
		}
		next = protocol.Earlier(next, d.at)
	}
	return done, next
}

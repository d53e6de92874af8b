package command

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxSecond bounds the times in an answer: the year 9999.
const maxSecond = 253402300799

func (s slot) slot() (protocol.Slot, error) {
	if s.Start < 0 || s.End > maxSecond {
		return protocol.Slot{}, fmt.Errorf("a slot from %d to %d: want Unix seconds", s.Start, s.End)
	}
	p := protocol.Slot{Start: time.Unix(s.Start, 0).UTC(), End: time.Unix(s.End, 0).UTC(), Cores: s.Cores}
	return p, p.Validate()
}

func slotOf(p protocol.Slot) *slot {
	return &slot{Start: p.Start.Unix(), End: p.End.Unix(), Cores: p.Cores}
}

// Reserve asks the program for a slot, rounded outward to whole seconds.
func (s *script) Reserve(now time.Time, id string, want protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	s.Changed(now)
	return s.slot(now, request{Do: "reserve", ID: id, Slot: slotOf(queue.Outward(want))})
}

func (s *script) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	return s.slot(now, request{Do: "find", ID: id})
}

func (s *script) slot(now time.Time, r request) (protocol.Slot, string, *protocol.Reason) {
	a, err := s.ask(now, r)
	if err == nil && a.OK && a.Slot == nil {
		err = fmt.Errorf("%s: %s: the answer is ok, but has no slot", s.cfg.Program, r.Do)
	}
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	if !a.OK {
		return protocol.Slot{}, "", a.reason()
	}
	got, err := a.Slot.slot()
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(fmt.Errorf("%s: %s: %w", s.cfg.Program, r.Do, err))
	}
	a.Name = cmp.Or(a.Name, r.ID)
	return got, a.Name, nil
}

func (a answer) reason() *protocol.Reason {
	return &protocol.Reason{Code: a.Code, Unit: protocol.AllUnits, Free: a.Free, Note: queue.OneLine([]byte(a.Note))}
}

// Release asks the program to free a slot. An unknown slot is free.
func (s *script) Release(now time.Time, id string) *protocol.Reason {
	s.Changed(now)
	a, err := s.ask(now, request{Do: "release", ID: id})
	switch {
	case err != nil:
		return queue.Unavailable(err)
	case !a.OK && a.Code != protocol.CodeUnknown:
		return a.reason()
	}
	return nil
}

func (s *script) read(now time.Time) (message.QueueChanged, error) {
	a, err := s.ask(now, request{Do: "state"})
	if err == nil && !a.OK {
		err = fmt.Errorf("%s: state: %s: %s", s.cfg.Program, a.Code, queue.OneLine([]byte(a.Note)))
	}
	if err != nil {
		return message.QueueChanged{}, err
	}
	q, err := a.state(now)
	if err != nil {
		return message.QueueChanged{}, fmt.Errorf("%s: state: %w", s.cfg.Program, err)
	}
	return q, nil
}

func (a answer) state(now time.Time) (message.QueueChanged, error) {
	q := message.QueueChanged{At: now, Capacity: a.Capacity}
	for _, r := range a.Running {
		if r.Cores < 1 || r.Cores > protocol.MaxCores || r.End < 0 || r.End > maxSecond {
			return q, fmt.Errorf("running job with cores %d, end %d: want at least 1 core, and Unix seconds", r.Cores, r.End)
		}
		q.Running = append(q.Running, message.RunningJob{Cores: r.Cores, End: time.Unix(r.End, 0).UTC()})
	}
	for _, w := range a.Queued {
		if w.Cores < 1 || w.Cores > protocol.MaxCores || w.Wall < 1 || w.Wall > maxSecond {
			return q, fmt.Errorf("waiting job with cores %d, wall %d: want at least 1 core, and seconds", w.Cores, w.Wall)
		}
		q.Queued = append(q.Queued, message.QueuedJob{Cores: w.Cores, Wall: min(time.Duration(w.Wall), 1<<31) * time.Second})
	}
	return q, a.reserved(&q)
}

func (a answer) reserved(q *message.QueueChanged) error {
	seen := map[string]bool{}
	for _, r := range a.Reservations {
		p, err := r.Slot.slot()
		if err != nil {
			return err
		}
		if r.ID == "" || len(r.ID) > queue.MaxID {
			return errors.New("a reservation without an ID, or with one that is too long")
		}
		if r.Mine && seen[r.ID] {
			return fmt.Errorf("reservation %q is listed twice", r.ID)
		}
		seen[r.ID] = seen[r.ID] || r.Mine
		q.Reservations = append(q.Reservations, message.QueueReservation{ID: r.ID, Slot: p, Mine: r.Mine})
	}
	return nil
}

package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Reservation is a sold slot: cores blocked over [Start, End), in seconds.
type Reservation struct {
	ID    string
	Start int64
	End   int64
	Cores int
}

// Reasons why a reservation is refused.
var (
	ErrSize = errors.New("the machine has fewer cores")
	ErrBusy = errors.New("too few cores are free")
	ErrPast = errors.New("the slot is over")
	ErrID   = errors.New("the reservation already exists, with another slot")
	ErrFull = errors.New("too many reservations")
)

// MaxReservations bounds the reservations that a machine holds at once; more
// are refused with ErrFull.
const MaxReservations = 1 << 16

// Machine plays a log as a live batch system. At its base instant it is in the recorded state: the
// same jobs run and wait. From there on jobs arrive and run as recorded, but the machine decides
// when they start: first come, first served with EASY back-filling around the sold slots, so that
// sales change the machine's future. After the end of the log the machine is empty.
//
//   - A job larger than the machine counts as large as the machine.
//   - If a log has more jobs running at the base than fit, nothing starts until enough
//     have ended.
//   - A job that outlasts its requested time continues, unless a sold slot needs
//     its cores: then the machine ends it, like a batch system at its limit. So a sold
//     slot is always honoured, except where jobs exceed the machine at the base.
//
// The same calls in the same order give the same machine. It is not safe for concurrent use.
type Machine struct {
	s        *scheduler
	arrivals []arrival // still to come, by time
	sold     []Reservation
	recorded bool // the state is still the recorded one
}

// arrival is a job's submission, with its recorded start.
type arrival struct {
	at, start int64
	task
}

func (a arrival) end() int64 { return a.start + a.run }

// NewMachine is the machine of a log at second base of the log. To start several
// machines of one log, make a Replay.
func NewMachine(l *Log, base int64) *Machine { return NewReplay(l).Machine(base) }

// byTime sorts by submit time; equal ones stay in the order of the log.
func byTime(a []arrival) {
	slices.SortStableFunc(a, func(x, y arrival) int { return cmp.Compare(x.at, y.at) })
}

// Now is the instant up to which the machine has been played.
func (m *Machine) Now() int64 { return m.s.now }

// Capacity is the number of cores of the machine.
func (m *Machine) Capacity() int { return m.s.capacity }

// Jobs returns how many jobs run and wait now.
func (m *Machine) Jobs() (running, waiting int) { return len(m.s.running), len(m.s.queue) }

// Next is the time of the machine's next event, which may be Now; false: there is none.
func (m *Machine) Next() (int64, bool) {
	if m.recorded {
		return m.s.now, true
	}
	next := int64(Forever)
	if len(m.s.running) > 0 {
		next = m.s.running[0].next()
	}
	if len(m.arrivals) > 0 {
		next = min(next, m.arrivals[0].at)
	}
	for _, r := range m.sold {
		if r.Start > m.s.now {
			next = min(next, r.Start)
		}
		next = min(next, r.End)
	}
	return next, next != Forever
}

// Advance plays the machine up to and including an instant and reports whether
// anything changed. An instant before Now changes nothing.
func (m *Machine) Advance(to int64) bool {
	changed := false
	for next, ok := m.Next(); ok && next <= to; next, ok = m.Next() {
		m.play(next)
		changed = true
	}
	if to > m.s.now {
		m.s.now = to
		m.s.plan.Forget(to)
	}
	return changed
}

// play carries out the events of one instant: ends, then starts and ends of slots, then
// arrivals, then starts.
func (m *Machine) play(now int64) {
	m.recorded = false
	m.s.now = now
	m.s.plan.Forget(now)
	m.s.finish()
	m.sold = slices.DeleteFunc(m.sold, func(r Reservation) bool { return r.End <= now })
	if m.serving() {
		m.s.evict()
	}
	arrived := 0
	for ; arrived < len(m.arrivals) && m.arrivals[arrived].at <= now; arrived++ {
		m.s.submit(m.arrivals[arrived].task)
	}
	m.arrivals = m.arrivals[arrived:]
	m.s.schedule()
}

// serving reports whether a sold slot has begun and not ended.
func (m *Machine) serving() bool {
	return slices.ContainsFunc(m.sold, func(r Reservation) bool { return r.Start <= m.s.now })
}

// Reserve blocks cores over a slot, or over its rest if it has begun. Errors: ErrBusy if
// they are not free throughout by the machine's own plan (Snapshot, Project), ErrSize,
// ErrPast, ErrFull, ErrID. Reserving the same again changes nothing.
func (m *Machine) Reserve(r Reservation) error {
	known, err := m.known(r)
	if known || err != nil {
		return err
	}
	if r.Cores < 1 || r.Cores > m.s.capacity {
		return fmt.Errorf("reserve %s: %d of %d cores: %w", r.ID, r.Cores, m.s.capacity, ErrSize)
	}
	if free := m.Snapshot().Project().Free(max(r.Start, m.s.now), r.End); free < r.Cores {
		return fmt.Errorf("reserve %s: %d cores wanted, %d free: %w", r.ID, r.Cores, max(free, 0), ErrBusy)
	}
	m.put(r)
	return nil
}

// Restore blocks cores without checking the plan, for slots that were sold before
// a restart. Sold slots come first if they exceed the machine, and nothing starts beside
// them until enough is free. Its errors are those of Reserve except ErrBusy.
func (m *Machine) Restore(r Reservation) error {
	known, err := m.known(r)
	if known || err != nil {
		return err
	}
	if r.Cores < 1 || r.Cores > m.s.capacity {
		return fmt.Errorf("restore %s: %d of %d cores: %w", r.ID, r.Cores, m.s.capacity, ErrSize)
	}
	m.put(r)
	return nil
}

// known reports whether r exists already, or why it is invalid.
func (m *Machine) known(r Reservation) (bool, error) {
	if i := m.index(r.ID); i >= 0 {
		if m.sold[i] != r {
			return false, fmt.Errorf("reserve %s: %w", r.ID, ErrID)
		}
		return true, nil
	}
	if r.End <= m.s.now || r.End <= r.Start {
		return false, fmt.Errorf("reserve %s: ends at %d, now %d: %w", r.ID, r.End, m.s.now, ErrPast)
	}
	if len(m.sold) == MaxReservations {
		return false, fmt.Errorf("reserve %s: %d reservations: %w", r.ID, MaxReservations, ErrFull)
	}
	return false, nil
}

func (m *Machine) index(id string) int {
	return slices.IndexFunc(m.sold, func(r Reservation) bool { return r.ID == id })
}

func (m *Machine) put(r Reservation) {
	m.sold = append(m.sold, r)
	m.s.plan.Add(r.Start, r.End, -r.Cores)
	if m.recorded {
		return
	}
	if m.serving() {
		m.s.evict()
	}
	// A slot that delays the first waiting job may let others pass it.
	m.s.schedule()
}

// Release frees a reservation's cores from now on and reports whether it existed.
// Waiting jobs may start at once.
func (m *Machine) Release(id string) bool {
	i := m.index(id)
	if i < 0 {
		return false
	}
	r := m.sold[i]
	m.sold = slices.Delete(m.sold, i, i+1)
	m.s.plan.Add(r.Start, r.End, r.Cores)
	if !m.recorded {
		m.s.schedule()
	}
	return true
}

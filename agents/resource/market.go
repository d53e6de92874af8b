package resource

import (
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// market is what can be sold: the calendar, renewed from the last state that the
// batch system told when it is next needed.
type market struct {
	calendar *calendar.Calendar
	known    bool
	state    *message.QueueChanged // not in the calendar yet
	heard    time.Time             // when the last state came
	down     *message.QueueDown    // the batch system cannot be asked; nil: it can
	running  int                   // jobs in the last state
	queued   int
	longest  time.Duration // that a job may last; 0: no bound
	sharp    *sharp        // nil: the requested times are believed
	dared    []dared       // promises not noted yet
}

// dared is a promise that the sharpened view alone allowed.
type dared struct {
	id   string
	slot protocol.Slot
}

// renew takes the batch system's state as it is now.
func (k *market) renew(now time.Time, q message.QueueChanged) {
	k.known, k.down, k.heard = true, nil, now
	k.running, k.queued, k.longest = len(q.Running)+q.Runs, len(q.Queued)+q.Waits, q.Longest
	k.state = &q
}

// fail notes that the batch system cannot be asked: until it can, nothing is
// sold on what it told before.
func (k *market) fail(q message.QueueDown) { k.down = &q }

// current is the market as of the last state. Playing a queue forward takes
// milliseconds, so it is done once per state, and not at all for states that
// nobody asks about; a driver with a long queue does it itself.
func (k *market) current() *market {
	if k.state == nil {
		return k
	}
	var shown []string
	for _, r := range k.state.Reservations {
		if r.Mine {
			shown = append(shown, r.ID)
		}
	}
	k.calendar.Renew(k.state.Capacity, foreseen(*k.state), shown)
	if k.sharp != nil {
		k.sharp.renew(*k.state, shown)
	}
	k.state = nil
	return k
}

// foreseen is the cores that are free from the state on, in Unix seconds.
func foreseen(q message.QueueChanged) *workload.Profile {
	if len(q.Foreseen) == 0 {
		return snapshot(q).Project()
	}
	steps := make([]workload.Step, len(q.Foreseen))
	for i, s := range q.Foreseen {
		steps[i] = workload.Step{At: s.Start.Unix(), Free: s.Cores}
	}
	return workload.ProfileOf(steps)
}

// snapshot is a state in Unix seconds; what is taken is rounded outward.
func snapshot(q message.QueueChanged) workload.Snapshot {
	s := workload.Snapshot{Now: q.At.Unix(), Capacity: q.Capacity}
	for i, j := range q.Running {
		s.Running = append(s.Running, workload.Running{Number: int32(i), Cores: j.Cores, End: ceil(j.End)})
	}
	for i, j := range q.Queued {
		wall := int64((j.Wall + time.Second - 1) / time.Second)
		s.Waiting = append(s.Waiting, workload.Waiting{Number: int32(i), Cores: j.Cores, Wall: wall})
	}
	for _, r := range q.Reservations {
		s.Reservations = append(s.Reservations, workload.Reservation{
			ID: r.ID, Start: r.Slot.Start.Unix(), End: ceil(r.Slot.End), Cores: r.Slot.Cores})
	}
	return s
}

func ceil(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// calendars are all that are kept.
func (k *market) calendars() []*calendar.Calendar {
	if k.sharp == nil {
		return []*calendar.Calendar{k.calendar}
	}
	return []*calendar.Calendar{k.calendar, k.sharp.free, k.sharp.held}
}

// forget drops what is past.
func (k *market) forget(now time.Time) {
	for _, c := range k.calendars() {
		c.Forget(now)
	}
}

// Free is the least number of cores that may be sold at any instant from start to
// end.
func (k *market) Free(start, end time.Time) int {
	free := k.current().calendar.Free(start, end)
	if k.sharp.sells() {
		free = max(free, k.sharp.Free(start, end))
	}
	return free
}

// Load is how many cores are allocated at t, and how many there are, as the batch
// system foresees it.
func (k *market) Load(t time.Time) (busy, capacity int) {
	share := k.current().calendar.Load(t)
	return share.Busy, share.Capacity
}

// Earliest is the first start in [from, latest] from which cores may be sold for
// the whole wall time.
func (k *market) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	start, ok := k.current().calendar.Earliest(from, latest.Add(wall), wall, cores)
	if !k.sharp.sells() {
		return start, ok
	}
	if ok {
		latest = start
	}
	if sooner, found := k.sharp.Earliest(cores, wall, from, latest); found && (!ok || sooner.Before(start)) {
		return sooner, true
	}
	return start, ok
}

// Add writes a promised slot into the calendar. The commit side promises no more
// units than the calendar has room for, and no unit twice.
func (k *market) Add(id string, slot protocol.Slot) {
	if k.sharp != nil && k.calendar.Free(slot.Start, slot.End) < slot.Cores {
		k.dared = append(k.dared, dared{id, slot})
	}
	for _, c := range k.calendars() {
		if err := c.Add(id, slot); err != nil {
			panic("resource: " + err.Error())
		}
	}
}

// Remove takes a slot out of the calendar.
func (k *market) Remove(id string) {
	for _, c := range k.calendars() {
		c.Remove(id)
	}
}

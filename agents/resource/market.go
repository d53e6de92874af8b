package resource

import (
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// market owns what can be sold: the calendar, which it renews from the batch system's
// last state when it is next needed.
type market struct {
	calendar   *calendar.Calendar
	known      bool
	state      *message.QueueChanged // not in the calendar yet
	heard      time.Time             // when the last state came
	down       *message.QueueDown    // nil: the batch system can be reached
	running    int                   // jobs in the last state
	queued     int
	longest    time.Duration // that a job may last; 0: no bound
	nodes      nodes
	optimistic *optimistic  // nil: only the requested times count
	overbooked []overbooked // promises that are not recorded yet
	fed        *federated   // nil: the site is in no federation
}

// overbooked is a promise that only the optimistic view allowed.
type overbooked struct {
	id   string
	slot protocol.Slot
}

// renew takes the current state of the batch system.
func (k *market) renew(now time.Time, q message.QueueChanged) {
	k.known, k.down, k.heard = true, nil, now
	k.running, k.queued, k.longest = len(q.Running)+q.Runs, len(q.Queued)+q.Waits, q.Longest
	k.state = &q
}

// current returns the market after the last state. Playing a queue forward takes
// milliseconds, so it happens once per state, and only for states that matter to
// somebody; a driver with a long queue does it itself.
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
	k.calendar.Renew(k.state.Capacity, k.fed.keep(foreseen(*k.state)), shown)
	k.nodes.renew(*k.state, shown)
	if k.optimistic != nil {
		k.optimistic.renew(*k.state, shown, k.fed)
	}
	k.state = nil
	return k
}

// foreseen is the profile of free cores from the state on, in Unix seconds.
func foreseen(q message.QueueChanged) *workload.Profile {
	if len(q.Foreseen) == 0 {
		return snapshot(q).Project()
	}
	return profile(q.Foreseen)
}

// snapshot converts a state to Unix seconds, and rounds occupied times outward.
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

func (k *market) calendars() []*calendar.Calendar {
	if k.optimistic == nil {
		return []*calendar.Calendar{k.calendar}
	}
	return []*calendar.Calendar{k.calendar, k.optimistic.free, k.optimistic.held}
}

func (k *market) forget(now time.Time) {
	k.nodes.forget(now)
	for _, c := range k.calendars() {
		c.Forget(now)
	}
}

// Free is the number of cores that may be sold from start to end.
func (k *market) Free(start, end time.Time) int {
	free := k.current().calendar.Free(start, end)
	if k.optimistic.sells() {
		free = max(free, k.optimistic.Free(start, end))
	}
	return free
}

// Load is the number of allocated cores at t, by the batch system's forecast, and of all cores.
func (k *market) Load(t time.Time) (busy, capacity int) {
	share := k.current().calendar.Load(t)
	return share.Busy, share.Capacity
}

// Earliest is the first start in [from, latest] from which cores may be sold for
// the whole wall time.
func (k *market) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	start, ok := k.current().calendar.Earliest(from, latest.Add(wall), wall, cores)
	if !k.optimistic.sells() {
		return start, ok
	}
	if ok {
		latest = start
	}
	if sooner, found := k.optimistic.Earliest(cores, wall, from, latest); found && (!ok || sooner.Before(start)) {
		return sooner, true
	}
	return start, ok
}

// Add enters a promised slot into the calendars. The commit side promises no more
// units than a calendar holds, and no unit twice.
func (k *market) Add(id string, slot protocol.Slot) {
	if k.optimistic != nil && k.calendar.Free(slot.Start, slot.End) < slot.Cores {
		k.overbooked = append(k.overbooked, overbooked{id, slot})
	}
	k.nodes.add(id, slot)
	for _, c := range k.calendars() {
		if err := c.Add(id, slot); err != nil {
			panic("resource: " + err.Error())
		}
	}
}

func (k *market) Remove(id string) {
	k.nodes.remove(id)
	for _, c := range k.calendars() {
		c.Remove(id)
	}
}

package market

import (
	"maps"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Cluster is a simulated batch system in memory: cores, the jobs of local users and
// reservations. It is a queue.System that reports the truth.
type Cluster struct {
	Cores    int
	slots    map[string]protocol.Slot
	released map[string]protocol.Slot // freed before their end
	jobs     []job
	chance   sim.Chance
	next     time.Time     // when the next local job arrives; zero: never
	arrived  int           // local jobs so far
	gap      time.Duration // mean time between local jobs; zero: no jobs
	ends     sim.Range     // of a job's run time, in percent of its wall time

	overbooked overbooking // slots that overlap running jobs
}

// job is a running job of a local user.
type job struct {
	number int
	cores  int
	start  time.Time
	wall   time.Time // the end according to its wall time
	end    time.Time // when it really ends
}

// NewCluster creates an idle machine that receives perDay local jobs.
func NewCluster(cores, perDay int, ends sim.Range, chance sim.Chance, now time.Time) *Cluster {
	c := &Cluster{Cores: cores, slots: map[string]protocol.Slot{}, released: map[string]protocol.Slot{}, chance: chance, ends: ends}
	if perDay > 0 {
		c.gap = 24 * time.Hour / time.Duration(perDay)
		c.next = now.Add(chance.Waiting(c.gap))
	}
	return c
}

// Slots are the reservations, by ID.
func (c *Cluster) Slots() map[string]protocol.Slot { return c.slots }

// Forget loses a granted reservation.
func (c *Cluster) Forget(id string) { delete(c.slots, id) }

// Released are the reservations that were freed before their end, by ID.
func (c *Cluster) Released() map[string]protocol.Slot { return c.released }

// Recall restores a freed reservation, unless its cores are taken, like a system that died
// before it saved the release.
func (c *Cluster) Recall(id string) {
	if slot := c.released[id]; c.free(slot) >= slot.Cores {
		c.slots[id] = slot
		delete(c.released, id)
	}
}

// free is the least number of cores at any instant of a slot that neither reservations nor
// jobs occupy.
func (c *Cluster) free(slot protocol.Slot) int {
	uses := slices.Collect(maps.Values(c.slots)) // in any order: they are summed
	for _, j := range c.jobs {
		uses = append(uses, protocol.Slot{End: j.wall, Cores: j.cores})
	}
	return c.Cores - queue.Taken(uses, slot)
}

// Reserve grants a slot; the same ID always gets the same answer.
func (c *Cluster) Reserve(_ time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if had, ok := c.slots[id]; ok {
		return had, id, nil
	}
	if free := c.free(slot); free < slot.Cores {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeBusy, Free: free, Unit: protocol.AllUnits}
	}
	c.grant(id, slot)
	return slot, id, nil
}

func (c *Cluster) grant(id string, slot protocol.Slot) {
	c.slots[id] = slot
	delete(c.released, id)
}

// Find returns a reservation.
func (c *Cluster) Find(_ time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	slot, ok := c.slots[id]
	if !ok {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnknown, Unit: protocol.AllUnits}
	}
	return slot, id, nil
}

// Release frees a reservation.
func (c *Cluster) Release(_ time.Time, id string) *protocol.Reason {
	if slot, ok := c.slots[id]; ok {
		c.released[id] = slot
		delete(c.slots, id)
	}
	return nil
}

// Used is the outcome of a slot's job according to the market's model.
func (c *Cluster) Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	return jobsModel().Status(now, id, slot), "", nil
}

// State is the machine's state as its scheduler sees it.
func (c *Cluster) State(now time.Time) (message.QueueChanged, error) {
	q := message.QueueChanged{At: now, Capacity: c.Cores}
	for _, j := range c.jobs {
		q.Running = append(q.Running, c.describe(j))
	}
	for _, id := range slices.Sorted(maps.Keys(c.slots)) {
		if c.slots[id].End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: c.slots[id], Mine: true})
		}
	}
	return q, nil
}

// Advance ends jobs and slots that are over, and starts local jobs.
func (c *Cluster) Advance(now time.Time) (changed bool, next time.Time) {
	n := len(c.jobs)
	c.jobs = slices.DeleteFunc(c.jobs, func(j job) bool { return !j.end.After(now) })
	changed = len(c.jobs) != n
	changed = drop(c.slots, now) || changed
	drop(c.released, now)
	changed = c.begin(now) || changed
	for !c.next.IsZero() && !c.next.After(now) {
		c.come(now)
		c.next = c.next.Add(c.chance.Waiting(c.gap))
		changed = true
	}
	next = c.next
	for _, j := range c.jobs {
		next = protocol.Earlier(next, j.end)
	}
	return changed, protocol.Earlier(next, c.overbooked.next(c.slots))
}

// drop removes the slots that are over.
func drop(slots map[string]protocol.Slot, now time.Time) bool {
	n := len(slots)
	maps.DeleteFunc(slots, func(_ string, s protocol.Slot) bool { return !s.End.After(now) })
	return len(slots) != n
}

// come starts a local user's job, if enough cores are free for its wall time.
func (c *Cluster) come(now time.Time) {
	wall := time.Duration(1+c.chance.N(8*60)) * time.Minute
	cores := 1 + c.chance.N(max(1, c.Cores/3))
	run := wall * time.Duration(c.chance.In(c.ends)) / 100
	if c.free(protocol.Slot{Start: now, End: now.Add(wall), Cores: cores}) >= cores {
		c.arrived++
		c.jobs = append(c.jobs, job{number: c.arrived, cores: cores, start: now, wall: now.Add(wall), end: now.Add(run)})
	}
}

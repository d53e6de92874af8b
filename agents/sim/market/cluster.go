package market

import (
	"maps"
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Cluster is a simulated batch system: so many cores, the jobs of local users,
// and reservations. It is a queue.System in memory, and says the truth.
type Cluster struct {
	Cores    int
	slots    map[string]protocol.Slot
	released map[string]protocol.Slot // that are not over yet
	jobs     []job
	chance   sim.Chance
	next     time.Time     // when the next local job comes; zero: none comes
	arrived  int           // local jobs so far
	gap      time.Duration // mean time between local jobs; zero: none
	ends     sim.Range     // of a job's run time, in percent of its wall time

	over overlaid // slots that lie over jobs; its zero value: none do
}

// job is one of a local user's, as it runs.
type job struct {
	number int
	cores  int
	start  time.Time
	wall   time.Time // the end that its wall time says
	end    time.Time // when it really ends
}

// NewCluster is an idle machine with perDay local jobs to come.
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

// Forget loses a reservation that was granted.
func (c *Cluster) Forget(id string) { delete(c.slots, id) }

// Released are the reservations that were freed and would not be over, by ID.
func (c *Cluster) Released() map[string]protocol.Slot { return c.released }

// Recall brings a freed reservation back, as a system does that died before the
// release was on its disk, unless its cores are taken.
func (c *Cluster) Recall(id string) {
	if slot := c.released[id]; c.free(slot) >= slot.Cores {
		c.slots[id] = slot
		delete(c.released, id)
	}
}

// free is the fewest cores that no reservation and no running job has at any
// instant of a slot. It changes only where something starts.
func (c *Cluster) free(slot protocol.Slot) int {
	least := c.freeAt(slot.Start)
	for _, s := range c.slots {
		if s.Start.After(slot.Start) && s.Start.Before(slot.End) {
			least = min(least, c.freeAt(s.Start))
		}
	}
	return least
}

func (c *Cluster) freeAt(t time.Time) int {
	free := c.Cores
	for _, s := range c.slots {
		if !t.Before(s.Start) && t.Before(s.End) {
			free -= s.Cores
		}
	}
	for _, j := range c.jobs {
		if t.Before(j.wall) {
			free -= j.cores
		}
	}
	return free
}

// Reserve grants a slot once; the same ID gets the same answer.
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

// Find reads a reservation back.
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

// Used is what the market's model says of a slot's job.
func (c *Cluster) Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	return jobsModel().Status(now, id, slot), "", nil
}

// State is the machine as its scheduler sees it.
func (c *Cluster) State(now time.Time) (message.QueueChanged, error) {
	q := message.QueueChanged{At: now, Capacity: c.Cores}
	for _, j := range c.jobs {
		q.Running = append(q.Running, c.tell(j))
	}
	for _, id := range slices.Sorted(maps.Keys(c.slots)) {
		if c.slots[id].End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: c.slots[id], Mine: true})
		}
	}
	return q, nil
}

// Advance lets jobs end and come, and ends what is over.
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
	return changed, protocol.Earlier(next, c.over.next(c.slots))
}

// drop forgets the slots that are over.
func drop(slots map[string]protocol.Slot, now time.Time) bool {
	n := len(slots)
	maps.DeleteFunc(slots, func(_ string, s protocol.Slot) bool { return !s.End.After(now) })
	return len(slots) != n
}

// come starts a local user's job, on cores that nothing has for its wall time; if
// there are none, it goes elsewhere.
func (c *Cluster) come(now time.Time) {
	wall := time.Duration(1+c.chance.N(8*60)) * time.Minute
	cores := 1 + c.chance.N(max(1, c.Cores/3))
	run := wall * time.Duration(c.chance.In(c.ends)) / 100
	if c.free(protocol.Slot{Start: now, End: now.Add(wall), Cores: cores}) >= cores {
		c.arrived++
		c.jobs = append(c.jobs, job{number: c.arrived, cores: cores, start: now, wall: now.Add(wall), end: now.Add(run)})
	}
}

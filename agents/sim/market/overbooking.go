package market

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"ramp/agents/queue"
	"ramp/agents/resource/forecast"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// overbooking owns the slots of a cluster that overlap running jobs. When such a slot begins and
// jobs within their wall time leave too few cores, it is lost; the slot sold last goes first.
type overbooking struct {
	on      bool
	coming  []string // overbooked slots that have not begun, in order of sale
	lost    int
	granted int
}

// next is when the next slot begins.
func (o *overbooking) next(slots map[string]protocol.Slot) (at time.Time) {
	for _, id := range o.coming {
		if slot, ok := slots[id]; ok {
			at = protocol.Earlier(at, slot.Start)
		}
	}
	return at
}

// ReserveOver grants a slot that fits beside the other slots, even if it overlaps running jobs.
func (c *Cluster) ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if _, ok := c.slots[id]; ok || !slot.Start.After(now) {
		return c.Reserve(now, id, slot)
	}
	uses := slices.Collect(maps.Values(c.slots)) // in any order: they are summed
	if free := c.Cores - queue.Taken(uses, slot); !c.overbooked.on || free < slot.Cores {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeBusy, Free: free, Unit: protocol.AllUnits}
	}
	if c.free(slot) < slot.Cores {
		c.overbooked.granted++
		c.overbooked.coming = append(c.overbooked.coming, id)
	}
	c.grant(id, slot)
	return slot, id, nil
}

// begin checks the slots that begin, and reports whether any was lost.
func (c *Cluster) begin(now time.Time) bool {
	var begun []string
	c.overbooked.coming = slices.DeleteFunc(c.overbooked.coming, func(id string) bool {
		slot, ok := c.slots[id]
		if ok && !slot.Start.After(now) {
			begun = append(begun, id)
		}
		return !ok || !slot.Start.After(now)
	})
	changed := false
	for _, id := range slices.Backward(begun) {
		if c.free(protocol.Slot{Start: now, End: now}) < 0 {
			delete(c.slots, id)
			c.overbooked.lost++
			changed = true
		}
	}
	return changed
}

// describe returns a job as the scheduler knows it. Where slots may be overbooked, it
// includes the times from which the site learns run times.
func (c *Cluster) describe(j job) message.RunningJob {
	r := message.RunningJob{Cores: j.cores, End: j.wall}
	if c.overbooked.on {
		r.ID, r.Submitted, r.Started, r.Wall = strconv.Itoa(j.number), j.start, j.start, j.wall.Sub(j.start)
	}
	return r
}

// learnt is the sites' initial knowledge of the run times of local jobs. It comes from a
// past with much shorter jobs, so that overbooked slots are lost.
func learnt(ends sim.Range, chance sim.Chance) *forecast.Forecast {
	f := &forecast.Forecast{}
	for range 200 {
		for _, cores := range []int{1, 5, 17, 65} {
			f.Ended(cores, 1000, int64(10*chance.In(sim.Range{Least: ends.Least, Most: ends.Least + (ends.Most-ends.Least)/4})))
		}
	}
	return f
}

package market

import (
	"slices"
	"strconv"
	"time"

	"ramp/agents/queue"
	"ramp/agents/resource/forecast"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// overlaid is a cluster that lets slots lie over running jobs. The truth shows when a
// slot begins: if jobs within their wall time leave too few cores, it is lost; of
// several the one sold last first.
type overlaid struct {
	on      bool
	coming  []string // slots over jobs that have not begun, in the order in which they were sold
	lost    int      // slots that jobs have broken
	granted int      // over jobs
}

// next is when the next slot begins.
func (o *overlaid) next(slots map[string]protocol.Slot) (at time.Time) {
	for _, id := range o.coming {
		if slot, ok := slots[id]; ok {
			at = protocol.Earlier(at, slot.Start)
		}
	}
	return at
}

// ReserveOver grants a slot beside the other slots, whatever runs now.
func (c *Cluster) ReserveOver(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if _, ok := c.slots[id]; ok || !slot.Start.After(now) {
		return c.Reserve(now, id, slot)
	}
	uses := make([]protocol.Slot, 0, len(c.slots))
	for _, s := range c.slots { // in any order: they are summed
		uses = append(uses, s)
	}
	if free := c.Cores - queue.Taken(uses, slot); !c.over.on || free < slot.Cores {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeBusy, Free: free, Unit: protocol.AllUnits}
	}
	if c.free(slot) < slot.Cores {
		c.over.granted++
		c.over.coming = append(c.over.coming, id)
	}
	c.grant(id, slot)
	return slot, id, nil
}

// begin looks at the slots that begin, and reports whether any was lost.
func (c *Cluster) begin(now time.Time) bool {
	var begun []string
	c.over.coming = slices.DeleteFunc(c.over.coming, func(id string) bool {
		slot, ok := c.slots[id]
		if ok && !slot.Start.After(now) {
			begun = append(begun, id)
		}
		return !ok || !slot.Start.After(now)
	})
	changed := false
	for _, id := range slices.Backward(begun) {
		if c.freeAt(now) < 0 {
			delete(c.slots, id)
			c.over.lost++
			changed = true
		}
	}
	return changed
}

// tell is a job as the scheduler knows it. What bounds are learnt from is told where
// slots may lie over jobs.
func (c *Cluster) tell(j job) message.RunningJob {
	r := message.RunningJob{Cores: j.cores, End: j.wall}
	if c.over.on {
		r.ID, r.Submitted, r.Started, r.Wall = strconv.Itoa(j.number), j.start, j.start, j.wall.Sub(j.start)
	}
	return r
}

// learnt is what sites know of the run times of local jobs at the beginning: of a
// past in which they were much shorter, so that promises are broken.
func learnt(ends sim.Range, chance sim.Chance) *forecast.Forecast {
	f := &forecast.Forecast{}
	for range 200 {
		for _, cores := range []int{1, 5, 17, 65} {
			f.Ended(cores, 1000, int64(10*chance.In(sim.Range{Least: ends.Least, Most: ends.Least + (ends.Most-ends.Least)/4})))
		}
	}
	return f
}

// Over counts the slots that were granted over jobs, and those that jobs have broken.
func (c *Cluster) Over() (granted, lost int) { return c.over.granted, c.over.lost }

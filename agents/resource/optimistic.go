package resource

import (
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of the optimistic view.
const (
	// evenOdds is both the probability of a shortage from which on a slot counts as
	// unlikely to be free, and the confidence of that estimate.
	evenOdds = .5
	// maxProbes bounds the starts that one search tries. Their distances grow from
	// probeFirst, so that the last lies most of a year ahead.
	maxProbes  = 32
	probeFirst = 30 * time.Second
	// The cores that running jobs need are computed for instants on a grid of seconds,
	// finer within the next hour, and cached for at most maxNeeds instants.
	fineGrid, coarseGrid = 60, 300
	maxNeeds             = 4096
)

// optimistic owns the view by which a site overbooks: it sells slots beyond the batch system's
// forecast that are free if every job runs as long as its learnt bound, unless the running jobs are
// too likely to break them (forecast.Optimistic). It is nil at a site that does not overbook.
type optimistic struct {
	view    forecast.Optimistic
	learnt  *forecast.Forecast
	stopped bool               // too many promises were broken
	free    *calendar.Calendar // by the bounds
	held    *calendar.Calendar // promised slots and reservations alone
	at      int64              // of the state, Unix seconds
	running []forecast.Claim
	opaque  []workload.Running // jobs without an ID or a start, which end at their limit
	needs   map[int64]int      // cores that the running jobs need, by instant
}

func newOptimistic(cores int, learnt *forecast.Forecast, now time.Time) *optimistic {
	return &optimistic{
		view: forecast.UsualView(), learnt: learnt, needs: map[int64]int{},
		free: calendar.New(cores, now), held: calendar.New(cores, now),
	}
}

func (o *optimistic) sells() bool { return o != nil && !o.stopped }

// renew takes the batch system's state, which includes our own slots named in shown.
func (o *optimistic) renew(q message.QueueChanged, shown []string, fed *federated) {
	snap := snapshot(q)
	o.at, o.running, o.opaque = snap.Now, nil, nil
	clear(o.needs)
	claims := make([]forecast.Claim, len(q.Running))
	for i, j := range q.Running {
		if j.ID == "" || j.Started.IsZero() {
			o.opaque = append(o.opaque, snap.Running[i])
			continue
		}
		claims[i] = forecast.Claim{Cores: j.Cores, Start: j.Started.Unix(), Requested: ceil(j.Started.Add(j.Wall)) - j.Started.Unix()}
		o.running = append(o.running, claims[i])
	}
	claim := func(r workload.Running) forecast.Claim { return claims[r.Number] }
	o.free.Renew(q.Capacity, fed.keep(o.learnt.Shorten(snap, claim, o.view.Level).Project()), shown)
	snap.Running, snap.Waiting = nil, nil
	o.held.Renew(q.Capacity, fed.keep(snap.Project()), shown)
}

// need is how many cores to leave to the running jobs, so that they break a slot that
// starts then with at most the view's risk. It falls with time: the start of a slot
// decides, and an earlier instant is on the safe side.
func (o *optimistic) need(start time.Time) int {
	ahead, grid := max(start.Unix()-o.at, 0), int64(fineGrid)
	if ahead > 3600 {
		grid = coarseGrid
	}
	at := o.at + ahead/grid*grid
	if n, ok := o.needs[at]; ok {
		return n
	}
	n := o.learnt.Occupancy(o.running, o.at, at, o.view.Risk, o.view.Level.Confidence)
	for _, r := range o.opaque {
		if r.End > at {
			n += r.Cores
		}
	}
	if len(o.needs) < maxNeeds {
		o.needs[at] = n
	}
	return n
}

// unlikely reports whether the running jobs will probably still occupy cores of a
// promised slot when it begins.
func (o *optimistic) unlikely(slot protocol.Slot) bool {
	at, room := slot.Start.Unix(), o.held.Free(slot.Start, slot.End)
	for _, r := range o.opaque {
		if r.End > at {
			room -= r.Cores
		}
	}
	return o.learnt.Shortfall(o.running, o.at, at, room, evenOdds) > evenOdds
}

// Free is the number of cores that may be sold over a slot.
func (o *optimistic) Free(start, end time.Time) int {
	return max(0, min(o.free.Free(start, end), o.held.Free(start, end)-o.need(start)))
}

// Earliest is the first of the probed starts in [from, latest] at which the cores may
// be sold for the whole wall time.
func (o *optimistic) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	step := probeFirst
	for range maxProbes {
		at, ok := o.free.Earliest(from, latest.Add(wall), wall, cores)
		if !ok {
			return time.Time{}, false
		}
		if o.Free(at, at.Add(wall)) >= cores {
			return at, true
		}
		from, step = at.Add(step), step+step/2
	}
	return time.Time{}, false
}

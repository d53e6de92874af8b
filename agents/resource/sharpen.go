package resource

import (
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of the sharpened view.
const (
	// giveUpAhead is how long before its start a slot over jobs is given up that will
	// rather not be there, so that its buyer can still buy another one.
	giveUpAhead = 5 * time.Minute
	// evens is the probability from which on it will rather not, and the confidence with
	// which that is reckoned: no longer on the safe side of either.
	evens = .5
	// maxProbes bounds the starts that one search tries. They lie further and further
	// apart, from probeFirst on, so that the last is most of a year ahead.
	maxProbes  = 32
	probeFirst = 30 * time.Second
	// What running jobs need is reckoned for instants so many seconds apart, within
	// the next hour and later, and kept for at most maxRooms of them.
	fineGrid, coarseGrid = 60, 300
	maxRooms             = 4096
)

// sharp is what may be sold beside what the batch system foresees: slots that are
// free if all jobs run as long as the bound at the view's level says, if the jobs that
// run now break them with a probability of at most its risk (forecast.Sharpened). It
// is nil at a site that does not sharpen.
type sharp struct {
	view    forecast.Sharpened
	learnt  *forecast.Forecast
	stopped bool               // too many promises were broken
	free    *calendar.Calendar // by the bounds
	held    *calendar.Calendar // promised slots and reservations alone
	at      int64              // of the state, Unix seconds
	running []forecast.Claim
	firm    []workload.Running // jobs of which nothing can be told
	rooms   map[int64]int      // by start: what the running jobs need then
}

func newSharp(cores int, learnt *forecast.Forecast, now time.Time) *sharp {
	return &sharp{
		view: forecast.UsualView(), learnt: learnt, rooms: map[int64]int{},
		free: calendar.New(cores, now), held: calendar.New(cores, now),
	}
}

// sells reports whether it is looked at.
func (s *sharp) sells() bool { return s != nil && !s.stopped }

// renew takes the batch system's state, of which the own slots named in shown are a
// part.
func (s *sharp) renew(q message.QueueChanged, shown []string) {
	snap := snapshot(q)
	s.at, s.running, s.firm = snap.Now, nil, nil
	clear(s.rooms)
	claims := make([]forecast.Claim, len(q.Running))
	for i, j := range q.Running {
		claims[i] = forecast.Claim{Cores: j.Cores, Start: j.Started.Unix(), Requested: ceil(j.Started.Add(j.Wall)) - j.Started.Unix()}
		if j.ID == "" || j.Started.IsZero() {
			claims[i] = forecast.Claim{}
			s.firm = append(s.firm, snap.Running[i])
			continue
		}
		s.running = append(s.running, claims[i])
	}
	claim := func(r workload.Running) forecast.Claim { return claims[r.Number] }
	s.free.Renew(q.Capacity, s.learnt.Sharpen(snap, claim, s.view.Level).Project(), shown)
	snap.Running, snap.Waiting = nil, nil
	s.held.Renew(q.Capacity, snap.Project(), shown)
}

// room is how many cores the running jobs need at an instant, so that they break a
// slot that begins then with the view's risk at most. It falls with time, so that of
// a slot its start is what counts, and an earlier instant is on the safe side.
func (s *sharp) room(start time.Time) int {
	ahead, grid := max(start.Unix()-s.at, 0), int64(fineGrid)
	if ahead > 3600 {
		grid = coarseGrid
	}
	at := s.at + ahead/grid*grid
	if n, ok := s.rooms[at]; ok {
		return n
	}
	n := s.learnt.Room(s.running, s.at, at, s.view.Risk, s.view.Level.Confidence)
	for _, r := range s.firm {
		if r.End > at {
			n += r.Cores
		}
	}
	if len(s.rooms) < maxRooms {
		s.rooms[at] = n
	}
	return n
}

// hopeless reports whether the jobs that run will rather have cores of a promised
// slot still when it begins.
func (s *sharp) hopeless(slot protocol.Slot) bool {
	at, room := slot.Start.Unix(), s.held.Free(slot.Start, slot.End)
	for _, r := range s.firm {
		if r.End > at {
			room -= r.Cores
		}
	}
	return s.learnt.Shortfall(s.running, s.at, at, room, evens) > evens
}

// Free is how many cores may be sold over a slot.
func (s *sharp) Free(start, end time.Time) int {
	return max(0, min(s.free.Free(start, end), s.held.Free(start, end)-s.room(start)))
}

// Earliest is the first start in [from, latest] that it tries and at which the cores
// may be sold for the whole wall time.
func (s *sharp) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	step := probeFirst
	for range maxProbes {
		at, ok := s.free.Earliest(from, latest.Add(wall), wall, cores)
		if !ok {
			return time.Time{}, false
		}
		if s.Free(at, at.Add(wall)) >= cores {
			return at, true
		}
		from, step = at.Add(step), step+step/2
	}
	return time.Time{}, false
}

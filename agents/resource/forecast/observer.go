package forecast

import "ramp/agents/workload"

// observer learns run times as an agent does that asks its batch system now and
// then: of a job that is neither running nor waiting any more, the accounts tell
// how long it ran.
type observer struct {
	learnt  Forecast
	jobs    []workload.Burst // by submit time; a job's number is its place
	arrived int              // of jobs, submitted so far
	open    []int32          // submitted and not known to have ended
	starts  map[int32]int64  // of the open ones that were seen running
}

func newObserver(jobs []workload.Burst) *observer {
	return &observer{jobs: jobs, starts: map[int32]int64{}}
}

// look takes in what the batch system shows.
func (o *observer) look(s workload.Snapshot) {
	for ; o.arrived < len(o.jobs) && o.jobs[o.arrived].Submit <= s.Now; o.arrived++ {
		o.open = append(o.open, int32(o.arrived))
	}
	shown := make(map[int32]bool, len(s.Running)+len(s.Waiting))
	for _, r := range s.Running {
		shown[r.Number] = true
		if _, seen := o.starts[r.Number]; !seen {
			o.starts[r.Number] = r.End - o.jobs[r.Number].Requested
		}
	}
	for _, w := range s.Waiting {
		shown[w.Number] = true
	}
	o.settle(shown)
}

// settle learns of the jobs that are gone.
func (o *observer) settle(shown map[int32]bool) {
	kept := o.open[:0]
	for _, n := range o.open {
		if shown[n] {
			kept = append(kept, n)
			continue
		}
		j := o.jobs[n]
		o.learnt.Ended(j.Cores, j.Requested, j.End-j.Start)
		delete(o.starts, n)
	}
	o.open = kept
}

// sharpen puts bounds in place of the requested times.
func (o *observer) sharpen(s workload.Snapshot, level Level) workload.Snapshot {
	return o.learnt.Sharpen(s, o.claim, level)
}

func (o *observer) claim(r workload.Running) Claim {
	return Claim{Cores: r.Cores, Start: o.starts[r.Number], Requested: o.jobs[r.Number].Requested}
}

// risk is the probability that the jobs that run now break the slot, which would
// lie beside all that are sold already.
func (o *observer) risk(s workload.Snapshot, a Ask, confidence float64) float64 {
	room := s.Capacity - a.Cores
	for _, r := range s.Reservations {
		if r.Start < a.Start+a.Wall && a.Start < r.End {
			room -= r.Cores
		}
	}
	claims := make([]Claim, len(s.Running))
	for i, r := range s.Running {
		claims[i] = o.claim(r)
	}
	return o.learnt.Shortfall(claims, s.Now, a.Start, room, confidence)
}

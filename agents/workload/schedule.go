package workload

import "slices"

// Schedule is a copy of a log with the waits that its jobs would have had under
// first come, first served with EASY back-filling, starting from an empty machine. Jobs
// that Bursts skips, and the bursts of swapped jobs, stay unchanged.
func Schedule(l *Log) *Log {
	out := &Log{Comments: slices.Clone(l.Comments), Jobs: slices.Clone(l.Jobs)}
	m := &Machine{s: newScheduler(-1, l.Capacity())}
	for i := range out.Jobs {
		j := &out.Jobs[i]
		b, ok := j.burst(Burst{})
		if !ok || j.Status.Partial() {
			continue
		}
		t := task{number: int32(i), cores: b.Cores, wall: b.Requested, run: int64(j.Run)}
		m.arrivals = append(m.arrivals, arrival{at: b.Submit, task: t})
	}
	byTime(m.arrivals)
	m.s.started = func(t task, at int64) {
		j := &out.Jobs[t.number]
		j.Wait = int32(min(at-j.Submit, MaxAhead))
	}
	m.Advance(Forever)
	return out
}

package forecast

import (
	"slices"

	"ramp/agents/workload"
)

// Sharpen puts bounds in place of the requested times of a snapshot, which stays as
// it is. claim tells of a running job when it began and what it asked for. Of one
// that has outlasted its time, or is known by its end alone, nothing better is known
// than what the batch system says.
func (f *Forecast) Sharpen(s workload.Snapshot, claim func(workload.Running) Claim, level Level) workload.Snapshot {
	s.Running, s.Waiting = slices.Clone(s.Running), slices.Clone(s.Waiting)
	for i, r := range s.Running {
		if c := claim(r); c.end() >= r.End {
			s.Running[i].End = f.BusyUntil(c, s.Now, level)
		}
	}
	for i, w := range s.Waiting {
		s.Waiting[i].Wall = f.RunBound(w.Cores, w.Wall, level)
	}
	return s
}

package forecast

import (
	"slices"

	"ramp/agents/workload"
)

// Optimistic is a view by which a site overbooks: it sells slots that are free if all
// jobs run as long as their bounds at the Level, and that the running jobs break with a
// probability of at most Risk.
type Optimistic struct {
	Level Level
	Risk  float64 // 0..1
}

// UsualView bounds run times by the median, since the jobs played forward are many, and
// allows a risk of one in twenty for a single slot. Few slots come near that risk, so
// that much fewer than one in twenty are broken.
func UsualView() Optimistic { return Optimistic{Level{Quantile: .5, Confidence: .95}, .05} }

// Shorten returns a copy of a snapshot with bounds instead of requested times. claim
// returns the start and the requested time of a running job. A job that has outlasted
// its requested time, or whose start is unknown, keeps the batch system's end.
func (f *Forecast) Shorten(s workload.Snapshot, claim func(workload.Running) Claim, level Level) workload.Snapshot {
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

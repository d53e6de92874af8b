package calendar

import (
	"time"

	"ramp/agents/workload"
	"ramp/protocol"
)

// Share is a part of the machine, exact: money is reckoned from it.
type Share struct {
	Busy     int // 0..Capacity
	Capacity int
}

// Free is the least number of cores free at any instant of [start, end), from 0
// to the capacity.
func (c *Calendar) Free(start, end time.Time) int {
	return c.clamp(c.free.Free(floor(start), ceil(end)))
}

// Load is the share of the machine that is allocated at an instant, clamped to
// 0..1 since real logs exceed their machine (specs §1.2).
func (c *Calendar) Load(t time.Time) Share {
	return Share{Busy: c.capacity - c.clamp(c.free.At(floor(t))), Capacity: c.capacity}
}

func (c *Calendar) clamp(free int) int { return min(max(free, 0), c.capacity) }

// Earliest is the first start, not before notBefore, of a slot of that wall time
// which ends by the deadline and over which the cores are free. It is notBefore
// itself or a whole second, in UTC.
func (c *Calendar) Earliest(notBefore, deadline time.Time, wall time.Duration, cores int) (time.Time, bool) {
	if wall <= 0 || cores < 1 || cores > c.capacity || notBefore.Add(wall).After(deadline) {
		return time.Time{}, false
	}
	if c.Free(notBefore, notBefore.Add(wall)) >= cores {
		return notBefore.UTC(), true
	}
	seconds := int64((wall + time.Second - 1) / time.Second)
	start, ok := c.free.Earliest(ceil(notBefore), ceil(deadline), seconds, cores)
	at := time.Unix(start, 0).UTC()
	if !ok || at.Add(wall).After(deadline) {
		return time.Time{}, false
	}
	return at, true
}

// Joint says how many cores can be had jointly over [start, end): spans that
// cover it without a gap, neighbours differing. If there are more steps than
// MaxSpans, spans of several steps tell the least of them, so that nothing is
// promised that is not there. It is empty if end is not after start.
func (c *Calendar) Joint(start, end time.Time) []protocol.Span {
	if !end.After(start) {
		return nil
	}
	var steps []workload.Step
	for s := range c.free.Steps(floor(start), ceil(end)) {
		steps = append(steps, workload.Step{At: s.At, Free: c.clamp(s.Free)})
	}
	return spans(coarsen(steps, protocol.MaxSpans), start, end)
}

// coarsen joins runs of steps, each to its least, until at most limit are left.
func coarsen(steps []workload.Step, limit int) []workload.Step {
	run := (len(steps) + limit - 1) / limit
	if run <= 1 {
		return steps
	}
	var few []workload.Step
	for i := 0; i < len(steps); i += run {
		few = append(few, steps[i])
		last := &few[len(few)-1]
		for _, s := range steps[i:min(i+run, len(steps))] {
			last.Free = min(last.Free, s.Free)
		}
	}
	return few
}

// spans turns steps into spans from start to end, joining equal neighbours.
func spans(steps []workload.Step, start, end time.Time) []protocol.Span {
	var out []protocol.Span
	for i, s := range steps {
		from := time.Unix(s.At, 0)
		if i == 0 {
			from = start
		}
		if n := len(out); n > 0 && out[n-1].Cores == s.Free {
			continue
		} else if n > 0 {
			out[n-1].End = from.UTC()
		}
		out = append(out, protocol.Span{Start: from.UTC(), End: end.UTC(), Cores: s.Free})
	}
	return out
}

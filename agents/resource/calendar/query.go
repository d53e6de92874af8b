package calendar

import "time"

// Share is an exact part of the machine, since prices depend on it.
type Share struct {
	Busy     int // 0..Capacity
	Capacity int
}

// Free is the least number of cores free at any instant of [start, end), from 0 to the capacity.
func (c *Calendar) Free(start, end time.Time) int {
	return c.clamp(c.free.Free(floor(start), ceil(end)))
}

// Load is the allocated share of the machine at an instant, clamped to 0..1 since real
// logs exceed their machine (specs §1.2).
func (c *Calendar) Load(t time.Time) Share {
	return Share{Busy: c.capacity - c.clamp(c.free.At(floor(t))), Capacity: c.capacity}
}

func (c *Calendar) clamp(free int) int { return min(max(free, 0), c.capacity) }

// Earliest is the first start, not before notBefore, of a slot of that wall time which ends by the
// deadline and over which the cores are free. It is notBefore itself or a whole second, in UTC.
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

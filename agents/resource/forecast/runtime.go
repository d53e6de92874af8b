package forecast

// partUnit is the whole requested time: parts of it are counted in millionths.
const partUnit = 1_000_000

// maxRequested bounds a requested time, in seconds, so that its product with
// partUnit fits into 63 bits.
const maxRequested = 1 << 40

// Claim is a running job: it occupies Cores since second Start, for at most Requested seconds.
type Claim struct {
	Cores     int
	Start     int64
	Requested int64
}

func (c Claim) end() int64 { return c.Start + c.Requested }

// part is the elapsed part of the requested time at an instant.
func (c Claim) part(at int64) int64 {
	return min(max(at-c.Start, 0), c.Requested) * partUnit / c.Requested
}

func (c Claim) sensible() bool { return c.Requested >= 1 && c.Requested <= maxRequested }

// Ended learns the run time of a job that has ended, in seconds, against the time
// that was requested for it. A job without a requested time teaches nothing.
func (f *Forecast) Ended(cores int, requested, run int64) {
	if requested < 1 || run < 0 {
		return
	}
	requested, run = min(requested, maxRequested), min(run, maxRequested)
	f.runs[Cluster(cores)].Learn((run*partUnit + requested - 1) / requested)
}

// BusyUntil is the latest end of a running job at that level: its requested end, or earlier if jobs
// of its size end earlier once they have run for as long a part of their requested time. It is
// after now, except for a job that has outlasted its requested time.
func (f *Forecast) BusyUntil(c Claim, now int64, l Level) int64 {
	if now >= c.end() || !c.sensible() {
		return c.end()
	}
	part, ok := f.runs[Cluster(c.Cores)].BoundAbove(c.part(now), l)
	if !ok || part >= partUnit {
		return c.end()
	}
	return min(max(c.Start+seconds(part, c.Requested), now+1), c.end())
}

// RunBound is the longest run time, at that level, of a job that has not started. It
// never exceeds the requested time.
func (f *Forecast) RunBound(cores int, requested int64, l Level) int64 {
	part, ok := f.runs[Cluster(cores)].Bound(l)
	if !ok || part >= partUnit || requested < 1 || requested > maxRequested {
		return requested
	}
	return max(seconds(part, requested), 1)
}

// seconds converts a part below the whole to seconds of a requested time, rounded up.
func seconds(part, requested int64) int64 { return (part*requested + partUnit - 1) / partUnit }

// Holds is the probability that a running job has not ended at an instant, on the
// safe side with that confidence: 0 from its requested end on, since a batch system
// ends it then, and 1 after too few observations.
func (f *Forecast) Holds(c Claim, now, at int64, confidence float64) float64 {
	switch {
	case at >= c.end():
		return 0
	case at <= now || !c.sensible():
		return 1
	}
	ended, ok := f.runs[Cluster(c.Cores)].WithinAbove(c.part(now), c.part(at), confidence)
	if !ok {
		return 1
	}
	return 1 - ended
}

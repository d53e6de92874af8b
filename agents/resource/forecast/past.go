package forecast

import (
	"cmp"
	"slices"

	"ramp/agents/workload"
)

// maxPast bounds the jobs of a log's past to learn from: the last ones.
const maxPast = 20_000

// Past is what a site would have learnt from a log by second until: the waits of the
// jobs started by then, in order of start, and the run times of those ended, in order of
// end; the last 20,000 of each.
func Past(l *workload.Log, until int64) *Forecast {
	f := &Forecast{}
	for _, j := range last(l, until, func(j *workload.Job) int64 { return j.Submit + int64(j.Wait) }) {
		f.Started(cores(j), int64(j.Wait), Bound{})
	}
	for _, j := range last(l, until, func(j *workload.Job) int64 { return j.Submit + int64(j.Wait) + int64(j.Run) }) {
		f.Ended(cores(j), int64(j.RequestedTime), int64(j.Run))
	}
	return f
}

// last returns the last jobs with an event by second until, in order of the event.
func last(l *workload.Log, until int64, at func(j *workload.Job) int64) []*workload.Job {
	var jobs []*workload.Job
	for i := range l.Jobs {
		j := &l.Jobs[i]
		if !j.Status.Partial() && j.Submit >= 0 && j.Run > 0 && j.Wait >= 0 && cores(j) > 0 && at(j) <= until {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b *workload.Job) int { return cmp.Compare(at(a), at(b)) })
	return jobs[max(0, len(jobs)-maxPast):]
}

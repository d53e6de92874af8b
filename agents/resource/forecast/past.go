package forecast

import (
	"cmp"
	"slices"

	"ramp/agents/workload"
)

// maxPast bounds the jobs of a log's past that are learnt: the last ones.
const maxPast = 20_000

// Past is what a site would have learnt of a log's waits by second until: of the
// jobs that had started by then, in order of start, at most the last 20,000.
func Past(l *workload.Log, until int64) *Forecast {
	var jobs []*workload.Job
	for i := range l.Jobs {
		j := &l.Jobs[i]
		if !j.Status.Partial() && j.Submit >= 0 && j.Run > 0 && j.Wait >= 0 && cores(j) > 0 && j.Submit+int64(j.Wait) <= until {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b *workload.Job) int {
		return cmp.Compare(a.Submit+int64(a.Wait), b.Submit+int64(b.Wait))
	})
	f := &Forecast{}
	for _, j := range jobs[max(0, len(jobs)-maxPast):] {
		f.Started(cores(j), int64(j.Wait), Bound{})
	}
	return f
}

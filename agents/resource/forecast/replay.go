package forecast

import (
	"cmp"
	"container/heap"
	"slices"

	"ramp/agents/workload"
)

// Replayed counts how the bounds of a log's jobs held.
type Replayed struct {
	Jobs     int // that ran, with a wait in the log
	Unknown  int // that ran, without a wait in the log
	Clusters [Clusters]Tally
}

// Tally counts one class of jobs in a replay.
type Tally struct {
	Score
	Untold  int64 `json:"untold"`  // submitted before there was a bound
	Changes int   `json:"changes"` // how often the past was dropped
}

// All is the sum over the classes.
func (r Replayed) All() Tally {
	var all Tally
	for _, t := range r.Clusters {
		all.Score = all.plus(t.Score)
		all.Untold += t.Untold
		all.Changes += t.Changes
	}
	return all
}

// Replay feeds a log's recorded waits to an empty forecast. Every job gets the bound at
// its submission, and the forecast learns its wait when it starts, so that it knows
// nothing of jobs submitted in the same second or still waiting. Replay skips swapped
// jobs (lines of one burst). The level must be valid.
func Replay(l *workload.Log, level Level) Replayed {
	var out Replayed
	var f Forecast
	var queue waiting
	for i, j := range submitted(l, &out) {
		queue.startedBefore(j.Submit, &f)
		told := f.WaitBound(cores(j), level)
		if !told.Known {
			out.Clusters[Cluster(cores(j))].Untold++
		}
		heap.Push(&queue, wait{at: j.Submit + int64(j.Wait), seconds: int64(j.Wait), order: i, cores: cores(j), told: told})
	}
	queue.startedBefore(workload.Forever, &f)
	for c := range out.Clusters {
		out.Clusters[c].Score = f.Score(c)
		out.Clusters[c].Changes = f.Waits(c).Changes()
	}
	return out
}

// submitted are the jobs with a known wait, by submit time.
func submitted(l *workload.Log, out *Replayed) []*workload.Job {
	var jobs []*workload.Job
	for i := range l.Jobs {
		j := &l.Jobs[i]
		if j.Status.Partial() || j.Submit < 0 || j.Run <= 0 || cores(j) <= 0 {
			continue
		}
		if j.Wait < 0 {
			out.Unknown++
			continue
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b *workload.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	out.Jobs = len(jobs)
	return jobs
}

// cores is the number of cores that a job had, or else asked for.
func cores(j *workload.Job) int {
	if j.Procs > 0 {
		return int(j.Procs)
	}
	return int(j.RequestedProcs)
}

// wait is a queued job, with its future start.
type wait struct {
	at      int64 // its start
	seconds int64
	order   int // of submission
	cores   int
	told    Bound
}

// waiting is a heap by start, then by order of submission.
type waiting []wait

func (h waiting) Len() int { return len(h) }
func (h waiting) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h waiting) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *waiting) Push(x any)   { *h = append(*h, x.(wait)) }
func (h *waiting) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// startedBefore lets the forecast learn the jobs that started before an instant.
func (h *waiting) startedBefore(t int64, f *Forecast) {
	for len(*h) > 0 && (*h)[0].at < t {
		w := heap.Pop(h).(wait)
		f.Started(w.cores, w.seconds, w.told)
	}
}

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

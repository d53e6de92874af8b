package forecast

import (
	"cmp"
	"container/heap"
	"slices"

	"ramp/agents/workload"
)

// Replayed is how the bounds of a log's jobs have held.
type Replayed struct {
	Jobs     int // that started and whose wait the log tells
	Unknown  int // that ran, but whose wait the log does not tell
	Clusters [Clusters]Tally
}

// Tally is one class of jobs in a replay.
type Tally struct {
	Score
	Untold  int64 `json:"untold"`  // submitted before there was a bound
	Changes int   `json:"changes"` // times that the past was dropped
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

// Replay plays a log's recorded waits through a forecast that knows nothing at
// the beginning. Every job is told the bound that stands when it is submitted; its
// wait is learnt when it starts, so that of jobs which are submitted at the same
// second or still wait nothing is known. Swapped jobs (lines of one burst) are left
// out. The level must be valid.
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

// cores is what a job had, else what it asked for.
func cores(j *workload.Job) int {
	if j.Procs > 0 {
		return int(j.Procs)
	}
	return int(j.RequestedProcs)
}

// wait is a job in the queue, with what only its start will tell.
type wait struct {
	at      int64 // its start
	seconds int64
	order   int // of submission
	cores   int
	told    Bound
}

// waiting is a heap by start; equal starts are by order of submission.
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

// startedBefore lets the forecast learn what started before an instant.
func (h *waiting) startedBefore(t int64, f *Forecast) {
	for len(*h) > 0 && (*h)[0].at < t {
		w := heap.Pop(h).(wait)
		f.Started(w.cores, w.seconds, w.told)
	}
}

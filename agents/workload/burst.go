package workload

import "iter"

// Burst is a stretch of execution in a log, with values derived from the fields
// (specs §1.3): it ran on Cores from Start to End.
type Burst struct {
	Number    int32
	Cores     int   // allocated, or else requested; > 0
	Submit    int64 // ≥ 0
	Start     int64 // Submit, plus the wait if known
	End       int64 // > Start
	Requested int64 // requested time, or else the run time
}

// Bursts yields the executed bursts in the order of the log. It skips jobs without run
// time, processors or submit time. A swapped job is its summary line; without one it is
// its bursts, each submitted at the end of the one before.
func (l *Log) Bursts() iter.Seq[Burst] {
	return func(yield func(Burst) bool) {
		summed := l.summarised()
		var last Burst
		for i := range l.Jobs {
			j := &l.Jobs[i]
			if j.Status.Partial() && summed[j.Number] {
				continue
			}
			b, ok := j.burst(last)
			if !ok {
				continue
			}
			if last = b; !yield(b) {
				return
			}
		}
	}
}

// summarised returns the jobs that have both bursts and a summary line, so that they do
// not count twice. Most logs have none.
func (l *Log) summarised() map[int32]bool {
	partial := map[int32]bool{}
	for i := range l.Jobs {
		if l.Jobs[i].Status.Partial() {
			partial[l.Jobs[i].Number] = true
		}
	}
	both := map[int32]bool{}
	for i := range l.Jobs {
		if j := &l.Jobs[i]; len(partial) > 0 && !j.Status.Partial() && partial[j.Number] {
			both[j.Number] = true
		}
	}
	return both
}

func (j *Job) burst(last Burst) (Burst, bool) {
	submit, cores := j.Submit, j.Procs
	if submit < 0 && j.Status.Partial() && last.Number == j.Number {
		submit = last.End // only the first burst of a job has a submit time
	}
	if cores <= 0 {
		cores = j.RequestedProcs
	}
	if submit < 0 || j.Run <= 0 || cores <= 0 || cores > MaxCapacity {
		return Burst{}, false
	}
	start := submit + int64(max(j.Wait, 0))
	b := Burst{
		Number: j.Number, Cores: int(cores), Submit: submit,
		Start: start, End: start + int64(j.Run), Requested: int64(j.RequestedTime),
	}
	if b.Requested <= 0 {
		b.Requested = int64(j.Run)
	}
	return b, true
}

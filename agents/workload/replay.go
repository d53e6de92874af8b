package workload

import "sort"

// Replay is a log prepared for starting machines at any second of it (specs §1.3:
// t = base + (now − market start)). Preparing sorts the log once; after that a
// machine costs what ran or waited at its base, not the log. The machines share the
// future jobs without changing them, so that each may have its own goroutine.
type Replay struct {
	capacity int
	jobs     []arrival // by submit time; equal ones as in the log
	latest   []int64   // the latest end of each replayBlock jobs
}

// replayBlock is the number of jobs that each entry of Replay.latest covers.
const replayBlock = 256

// NewReplay prepares a log. It keeps no reference to the log.
func NewReplay(l *Log) *Replay {
	r := &Replay{capacity: l.Capacity()}
	for b := range l.Bursts() {
		t := task{number: b.Number, cores: b.Cores, wall: b.Requested, run: b.End - b.Start}
		r.jobs = append(r.jobs, arrival{at: b.Submit, start: b.Start, task: t})
	}
	byTime(r.jobs)
	r.latest = make([]int64, (len(r.jobs)+replayBlock-1)/replayBlock)
	for i, j := range r.jobs {
		r.latest[i/replayBlock] = max(r.latest[i/replayBlock], j.end())
	}
	return r
}

// Machine is the log's machine from second base of the log on, starting in the recorded state.
func (r *Replay) Machine(base int64) *Machine {
	come := sort.Search(len(r.jobs), func(i int) bool { return r.jobs[i].at > base })
	m := &Machine{s: newScheduler(base, r.capacity), recorded: true, arrivals: r.jobs[come:]}
	for i := 0; i < come; i++ {
		if i%replayBlock == 0 && r.latest[i/replayBlock] <= base {
			i += replayBlock - 1
			continue
		}
		switch j := r.jobs[i]; {
		case j.end() <= base: // long past
		case j.start <= base:
			m.s.start(j.task, j.start)
		default:
			m.s.submit(j.task)
		}
	}
	return m
}

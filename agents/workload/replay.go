package workload

import "sort"

// Replay is a log made ready to begin machines at any second of it (specs §1.3:
// t = base + (now − market start)). Making one sorts the log once; after that a
// machine costs what ran or waited at its base, not the log. Its machines share
// what is to come and change nothing of it, so that each may have a goroutine of
// its own.
type Replay struct {
	capacity int
	jobs     []arrival // by submit time; equal ones as in the log
	latest   []int64   // of every replayBlock jobs, the latest end
}

// replayBlock is how many jobs one look at Replay.latest skips.
const replayBlock = 256

// NewReplay makes a log ready. It keeps nothing of the log itself.
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

// Machine is the log's machine from second base of the log on, in the state that
// the log recorded.
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

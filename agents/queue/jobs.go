package queue

import (
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Jobs is the ability of a System to run programs in its reservations. Package
// queuetest tests its promises as well:
//
//   - A job begins at most once, however often it is submitted and whatever
//     crashes: the System finds it again by its ID.
//   - It ends with its slot at the latest, with all its processes.
//   - Its output and its exit status outlast the driver.
//   - No shell reads any of its words.
type Jobs interface {
	// Submit lets a job begin as soon as its slot does, durably. Submitting it again succeeds.
	Submit(now time.Time, job message.Job) *protocol.Reason
	// Signal suspends, resumes or kills a job, possibly a moment later.
	Signal(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason
	// Statuses returns the status of jobs by ID, without unknown ones.
	Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error)
	// JobPace is how often to poll running jobs.
	JobPace() Pace
}

// Ender is a System that often sees at once that a job has ended. The Loop polls its jobs
// at each word of the channel, which may be spurious or missing.
type Ender interface {
	Ended() <-chan struct{}
}

// MaxJobs bounds the polled jobs; more are refused with limit.
const MaxJobs = 1 << 12

// watch holds the jobs that are not over.
type watch struct {
	jobs   Jobs // nil: the system runs no programs
	live   map[string]watched
	pace   Pace
	failed bool            // at the last poll
	ended  <-chan struct{} // see Ender; nil: nothing comes
}

type watched struct {
	job  message.Job
	last protocol.JobStatus
}

func newWatch(s System) watch {
	w := watch{live: map[string]watched{}}
	if jobs, ok := s.(Jobs); ok {
		w.jobs, w.pace = jobs, jobs.JobPace()
	}
	if e, ok := s.(Ender); ok {
		w.ended = e.Ended()
	}
	return w
}

// job carries out a request about a job.
func (l *Loop) job(now time.Time, body protocol.Body) protocol.Body {
	switch r := body.(type) {
	case message.Submit:
		return l.submit(now, r.Job)
	case message.Signal:
		return l.signal(now, r)
	case message.JobQuery:
		return l.query(now, r.Job)
	}
	panic("queue: an unknown kind of request about a job")
}

func (l *Loop) submit(now time.Time, job message.Job) protocol.Body {
	w := &l.watch
	if why := l.cannotRun(job); why != nil {
		return refusedJob(job.ID, "", why)
	}
	if why := w.jobs.Submit(now, job); why != nil {
		return refusedJob(job.ID, "", why)
	}
	return l.query(l.now(), job)
}

func (l *Loop) cannotRun(job message.Job) *protocol.Reason {
	switch _, known := l.watch.live[job.ID]; {
	case l.watch.jobs == nil:
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "this batch system runs no programs"}
	case job.ID == "" || len(job.ID) > MaxID || len(job.Argv) == 0:
		return &protocol.Reason{Code: protocol.CodeMalformed, Note: "the job has no ID or no program"}
	case !known && len(l.watch.live) >= MaxJobs:
		return &protocol.Reason{Code: protocol.CodeLimit, Note: "too many jobs are running"}
	}
	return nil
}

// query answers with the status of a job, and polls it from now on.
func (l *Loop) query(now time.Time, job message.Job) protocol.Body {
	w := &l.watch
	if why := l.cannotRun(job); why != nil {
		return refusedJob(job.ID, "", why)
	}
	all, err := w.jobs.Statuses(now, []message.Job{job})
	if err != nil {
		w.live[job.ID] = watched{job: job}
		w.pace.Soon(now)
		return refusedJob(job.ID, "", Unavailable(err))
	}
	status, ok := all[job.ID]
	if !ok {
		delete(w.live, job.ID)
		return refusedJob(job.ID, "", &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such job"})
	}
	l.note(job, status)
	w.pace.Soon(now)
	return message.JobChanged{ID: job.ID, At: now, Status: status}
}

func (l *Loop) note(job message.Job, status protocol.JobStatus) {
	if status.State.Over() {
		delete(l.watch.live, job.ID)
		return
	}
	l.watch.live[job.ID] = watched{job, status}
}

func (l *Loop) signal(now time.Time, r message.Signal) protocol.Body {
	w, ok := l.watch.live[r.ID]
	if !ok {
		return refusedJob(r.ID, r.Verb, &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such job, or it has ended"})
	}
	if why := l.watch.jobs.Signal(now, w.job, r.Verb); why != nil {
		return refusedJob(r.ID, r.Verb, why)
	}
	return l.query(l.now(), w.job)
}

func refusedJob(id string, verb message.JobSignal, why *protocol.Reason) message.JobRefused {
	r := *why
	r.Unit = protocol.AllUnits
	return message.JobRefused{ID: id, Verb: verb, Reason: r}
}

// look polls the jobs if a poll is due, and delivers changes. It returns when to poll
// again; zero: no job runs.
func (l *Loop) look(deliver func(m protocol.Message)) time.Time {
	w, now := &l.watch, l.now()
	if len(w.live) == 0 {
		return time.Time{}
	}
	if !w.pace.Due(now) {
		return w.pace.Next()
	}
	jobs := make([]message.Job, 0, len(w.live))
	for _, id := range slices.Sorted(maps.Keys(w.live)) {
		jobs = append(jobs, w.live[id].job)
	}
	all, err := w.jobs.Statuses(now, jobs)
	if err != nil && !w.failed {
		l.log.Error("batch system: cannot read the status of jobs; they keep running", "err", err)
	}
	w.failed = err != nil
	w.pace.Looked(now, err == nil && l.publishJobs(now, jobs, all, deliver), err)
	return w.pace.Next()
}

// publishJobs delivers changed statuses, and reports whether there were any.
func (l *Loop) publishJobs(now time.Time, jobs []message.Job, all map[string]protocol.JobStatus, deliver func(m protocol.Message)) bool {
	any := false
	for _, job := range jobs {
		status, ok := all[job.ID]
		switch {
		case !ok:
			delete(l.watch.live, job.ID)
			deliver(l.message(protocol.Inform, refusedJob(job.ID, "", &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such job"})))
		case !sameJob(status, l.watch.live[job.ID].last):
			l.note(job, status)
			deliver(l.message(protocol.Inform, message.JobChanged{ID: job.ID, At: now, Status: status}))
		default:
			continue
		}
		any = true
	}
	return any
}

// sameJob reports whether two statuses differ at most in the usage so far.
func sameJob(a, b protocol.JobStatus) bool {
	return a.State == b.State && a.Exit == b.Exit && a.Note == b.Note && a.Started.Equal(b.Started)
}

// JobVariable is in the environment of every process of a job, with the job's
// directory, so that a driver finds all its processes.
const JobVariable = "RAMP_JOB"

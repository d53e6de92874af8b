package script

import (
	"errors"
	"io/fs"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Tolerances between different clocks and files.
const (
	// fileGrace is how long to wait for the file with a job's usage before reporting its
	// end: the nodes' files may appear late.
	fileGrace = 5 * time.Second
	// missGrace is how long a begun job that the batch system does not know still counts as
	// running.
	missGrace = 15 * time.Second
	// endGrace is how long before the end of its slot a job may have been ended by it:
	// the script ends it a moment early, and Slurm reports whole seconds.
	endGrace = 2500 * time.Millisecond
	// ticks is how much longer a job may have run than whole seconds show.
	ticks = time.Second
)

// Entry is the batch system's report on a job that it knows.
type Entry struct {
	State protocol.JobState // waiting, running or suspended; empty: it has ended
	Report
}

// Ask queries a batch system about all jobs at once. The result lacks unknown jobs.
type Ask func(jobs []message.Job) (map[string]Entry, error)

// Paces of polling: jobs' files often, the batch system less often.
const (
	filesLeast = 50 * time.Millisecond
	filesMost  = 500 * time.Millisecond
)

// FilesPace is how often to poll the files of jobs: for a System's JobPace.
func FilesPace() queue.Pace { return queue.Pace{Least: filesLeast, Most: filesMost} }

// Watch owns the statuses of jobs. It reads their files at every query, and asks the
// batch system when the files have changed or a poll is due.
type Watch struct {
	name        string // of the batch system, for people
	least, most time.Duration
	pace        queue.Pace
	files       map[string]traces
	entries     map[string]Entry
	err         error // of the last query to the batch system
	missed      map[string]time.Time
	ends        map[string]ended // that are not recorded yet
}

type ended struct {
	job    message.Job
	status protocol.JobStatus
}

// NewWatch makes a Watch that pauses between least, after a change, and most between
// two queries to the batch system.
func NewWatch(name string, least, most time.Duration) *Watch {
	return &Watch{name: name, least: least, most: most, missed: map[string]time.Time{}, ends: map[string]ended{}}
}

// Soon makes the next query ask the batch system.
func (w *Watch) Soon() { w.pace = queue.Pace{Least: w.least, Most: w.most} }

// Statuses returns the status of jobs by ID, without unknown ones.
func (w *Watch) Statuses(now time.Time, jobs []message.Job, ask Ask) (map[string]protocol.JobStatus, error) {
	w.record()
	told := make(map[string]protocol.JobStatus, len(jobs))
	files := make(map[string]traces, len(jobs))
	var open []message.Job
	for _, job := range jobs {
		if e, over := w.ends[job.ID]; over {
			told[job.ID] = e.status
			continue
		}
		var s protocol.JobStatus
		if err := queue.ReadFile(control(job, stateFile), &s); err != nil {
			return nil, err
		}
		if s.State.Over() {
			told[job.ID] = s
			continue
		}
		t, err := read(job)
		if err != nil {
			return nil, err
		}
		open, files[job.ID] = append(open, job), t
	}
	if err := w.look(now, open, files, ask); err != nil {
		return nil, err
	}
	for _, job := range open {
		if s := w.status(now, job, files[job.ID]); s.State != "" {
			told[job.ID] = s
		}
	}
	return told, nil
}

// look asks the batch system about the jobs that have not ended, if their files show
// news or a poll is due.
func (w *Watch) look(now time.Time, open []message.Job, files map[string]traces, ask Ask) error {
	if len(open) == 0 {
		return nil
	}
	for _, job := range open {
		last, seen := w.files[job.ID]
		if t := files[job.ID]; !seen || t.begun != last.begun || t.done != last.done {
			w.Soon()
		}
	}
	if !w.pace.Due(now) {
		return w.err
	}
	entries, err := ask(open)
	w.pace.Looked(now, false, err)
	w.err = err
	if err != nil {
		return err
	}
	w.entries, w.files = entries, files
	for _, job := range open { // it may have begun and ended before the query
		if entry, known := entries[job.ID]; known && entry.State != "" {
			continue
		}
		if files[job.ID], err = read(job); err != nil {
			return err
		}
	}
	return nil
}

// status is the status of a job; an empty State: nobody knows it. An ended job is
// recorded, since batch systems forget it within minutes.
func (w *Watch) status(now time.Time, job message.Job, t traces) protocol.JobStatus {
	entry, known := w.entries[job.ID]
	s := protocol.JobStatus{}
	switch {
	case known && entry.State == protocol.JobWaiting:
		s.State, s.Note = protocol.JobWaiting, entry.Note
	case known && entry.State != "":
		s = protocol.JobStatus{State: entry.State, Started: entry.Start, Usage: t.running(now, job, entry.Report)}
	case known:
		s = t.ended(now, job, entry.Report)
	case t.done:
		s = t.forgotten(job)
	case t.begun:
		s = w.missing(now, job, t)
	case t.unwanted: // killed before it began: do not submit it again
		s = protocol.JobStatus{State: protocol.JobKilled, Ended: now.UTC()}
	}
	if known || !t.begun || s.State.Over() {
		delete(w.missed, job.ID)
	}
	if s.State.Over() {
		w.ends[job.ID] = ended{job, s}
		w.record()
	}
	return s
}

// record makes the ends of jobs durable. On a full disk they wait in memory: a job's files go only
// when its end is known, and other jobs have ends, too. Those whose directory has gone need none.
func (w *Watch) record() {
	for id, e := range w.ends {
		if err := queue.WriteFile(control(e.job, stateFile), e.status); err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(w.ends, id)
		}
	}
}

// share is a job's allotment: the cores of its slot, which it has to itself.
func share(job message.Job) int64 { return int64(job.Slot.Cores) * protocol.Core }

// missing is the status of a job that has begun and recorded no end, and that the batch
// system does not know.
func (w *Watch) missing(now time.Time, job message.Job, t traces) protocol.JobStatus {
	since, ok := w.missed[job.ID]
	if !ok {
		w.missed[job.ID], since = now, now
	}
	if now.Sub(since).Abs() < missGrace {
		return protocol.JobStatus{State: protocol.JobRunning, Started: t.began}
	}
	s := protocol.JobStatus{State: protocol.JobLost, Started: t.began, Ended: now.UTC(), Note: w.name + " has lost the job"}
	if t.unwanted {
		s.State = protocol.JobKilled
	}
	return s
}

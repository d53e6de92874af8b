package script

import (
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Times within which different clocks and files are believed to tell the same.
const (
	// fileGrace is how long the end of a job is not told because the file with what
	// it used is not seen yet: the nodes' files may come late.
	fileGrace = 5 * time.Second
	// missGrace is how long a job that has begun, and that the batch system does not know, still
	// counts as running.
	missGrace = 15 * time.Second
	// endGrace is how long before the end of its slot a job may have been ended by
	// it: the script ends it a moment early, and Slurm tells whole seconds.
	endGrace = 2500 * time.Millisecond
	// ticks is how much longer a job may have run than whole seconds say.
	ticks = time.Second
)

// Stand is what a batch system says of a job that it knows.
type Stand struct {
	State protocol.JobState // waiting, running or suspended; empty: it is over
	Report
}

// Ask asks a batch system about jobs, all at once. Those that it does not know are
// left out.
type Ask func(jobs []message.Job) (map[string]Stand, error)

// Paces of looking at jobs: often at their files, less often at the batch system.
const (
	filesLeast = 50 * time.Millisecond
	filesMost  = 500 * time.Millisecond
)

// FilesPace is how often jobs are looked at: for a System's JobPace.
func FilesPace() queue.Pace { return queue.Pace{Least: filesLeast, Most: filesMost} }

// Watch tells how jobs stand. Their files are looked at whenever it is asked, the
// batch system when they have changed or when it is time to.
type Watch struct {
	name        string // of the batch system, for people
	least, most time.Duration
	pace        queue.Pace
	files       map[string]traces
	stands      map[string]Stand
	err         error // of the last look at the batch system
	missed      map[string]time.Time
}

// NewWatch makes a Watch of a batch system that is asked with pauses between least,
// after a change, and most.
func NewWatch(name string, least, most time.Duration) *Watch {
	return &Watch{name: name, least: least, most: most, missed: map[string]time.Time{}}
}

// Soon has the batch system be asked the next time.
func (w *Watch) Soon() { w.pace = queue.Pace{Least: w.least, Most: w.most} }

// Statuses tells how jobs stand, by ID. One that nobody knows is left out.
func (w *Watch) Statuses(now time.Time, jobs []message.Job, ask Ask) (map[string]protocol.JobStatus, error) {
	told := make(map[string]protocol.JobStatus, len(jobs))
	files := make(map[string]traces, len(jobs))
	var open []message.Job
	for _, job := range jobs {
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
		s, err := w.status(now, job, files[job.ID])
		if err != nil {
			return nil, err
		}
		if s.State != "" {
			told[job.ID] = s
		}
	}
	return told, nil
}

// look asks the batch system about the jobs that are not over, if their files tell
// something new, or it is time to.
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
	stands, err := ask(open)
	w.pace.Looked(now, false, err)
	w.err = err
	if err != nil {
		return err
	}
	w.stands, w.files = stands, files
	for _, job := range open { // it may have begun and ended before it was asked
		if stand, known := stands[job.ID]; known && stand.State != "" {
			continue
		}
		if files[job.ID], err = read(job); err != nil {
			return err
		}
	}
	return nil
}

// status is how a job stands; no State: nobody knows it. One that is over is
// written down, since batch systems forget it within minutes.
func (w *Watch) status(now time.Time, job message.Job, t traces) (protocol.JobStatus, error) {
	stand, known := w.stands[job.ID]
	s := protocol.JobStatus{}
	switch {
	case known && stand.State == protocol.JobWaiting:
		s.State, s.Note = protocol.JobWaiting, stand.Note
	case known && stand.State != "":
		s = protocol.JobStatus{State: stand.State, Started: stand.Start, Usage: t.running(now, job, stand.Report)}
	case known:
		s = t.ended(now, job, stand.Report)
	case t.done:
		s = t.forgotten(job)
	case t.begun:
		s = w.missing(now, job, t)
	case t.unwanted: // before it began: it must not be submitted again
		s = protocol.JobStatus{State: protocol.JobKilled, Ended: now.UTC()}
	}
	if known || !t.begun || s.State.Over() {
		delete(w.missed, job.ID)
	}
	if !s.State.Over() {
		return s, nil
	}
	return s, queue.WriteFile(control(job, stateFile), s)
}

// share is what a job is given: the cores of its slot, which are its own.
func share(job message.Job) int64 { return int64(job.Slot.Cores) * protocol.Core }

// missing is how a job stands that has begun, that the batch system does not know,
// and that has not said how it ended.
func (w *Watch) missing(now time.Time, job message.Job, t traces) protocol.JobStatus {
	since, ok := w.missed[job.ID]
	if !ok {
		w.missed[job.ID], since = now, now
	}
	if now.Sub(since).Abs() < missGrace {
		return protocol.JobStatus{State: protocol.JobRunning, Started: t.began}
	}
	s := protocol.JobStatus{State: protocol.JobLost, Started: t.began, Ended: now.UTC(), Note: w.name + " does not know what became of it"}
	if t.unwanted {
		s.State = protocol.JobKilled
	}
	return s
}

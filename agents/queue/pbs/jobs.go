package pbs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Pauses between two queries to PBS: one qstat covers all jobs.
const (
	jobLeast = 500 * time.Millisecond
	jobMost  = 5 * time.Second
)

// JobPace is how often to poll running jobs.
func (b *batch) JobPace() queue.Pace { return script.FilesPace() }

// Submit submits a job to the queue of its reservation, as its account. The program's words and
// environment are arguments of qsub after "--", which PBS starts without a shell.
func (b *batch) Submit(now time.Time, job message.Job) *protocol.Reason {
	if len(b.mark.Name(job.ID)) > maxName {
		return &protocol.Reason{Code: protocol.CodeLimit, Note: fmt.Sprintf("the job's name is longer than %d bytes", maxName)}
	}
	who, known, why := b.jobs.Prepare(now, job, b.entries)
	if known || why != nil {
		return why
	}
	into, why := b.queueOf(now, job.Reservation)
	if why != nil {
		return why
	}
	args := []string{
		"-N", b.mark.Name(job.ID), "-q", into, "-r", "n", "-j", "oe", "-o", "/dev/null", "-m", "n",
		"-l", fmt.Sprintf("select=%d:ncpus=1", job.Slot.Cores), "-l", fmt.Sprintf("walltime=%d", max(int(job.Slot.End.Sub(now).Seconds()), 1)), "--", "/usr/bin/env",
	}
	args = append(append(args, who.Environment(job.Dir)...), job.Env...)
	args = append(append(args, "/bin/sh", script.Path(job)), script.Args(job)...)
	own := *b
	own.program.Prefix, own.program.As = nil, who.Credential // the job belongs to its account
	if _, err := own.run("qsub", args...); err != nil {
		return notSubmitted(err)
	}
	return nil
}

// queueOf is the queue of an existing reservation that has begun.
func (b *batch) queueOf(now time.Time, id string) (string, *protocol.Reason) {
	list, err := b.mine(id)
	if err != nil {
		return "", queue.Unavailable(err)
	}
	for _, r := range list {
		if r.confirmed() && r.slot.End.After(now) && r.queue != "" && r.queue[0] != '-' {
			return r.queue, nil
		}
	}
	return "", &protocol.Reason{Code: protocol.CodeExpired, Note: "no such reservation"}
}

// notSubmitted says why PBS refused a job.
func notSubmitted(err error) *protocol.Reason {
	for _, words := range []string{"Unauthorized", "not authorized", "No Permission", "Bad UID"} {
		if strings.Contains(err.Error(), words) {
			return &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
		}
	}
	return queue.Unavailable(err)
}

// Signal suspends, resumes or kills a job. Suspending and resuming need an operator's rights.
func (b *batch) Signal(now time.Time, of message.Job, verb message.JobSignal) *protocol.Reason {
	list, err := b.theirs([]message.Job{of})
	if err != nil {
		return queue.Unavailable(err)
	}
	b.jobs.Soon()
	j, ok := list[of.ID]
	if !ok || !j.live() {
		return &protocol.Reason{Code: protocol.CodeUnknown, Note: "the job is not running"}
	}
	switch verb {
	case message.SignalKill:
		if err = script.Unwanted(now, of); err == nil {
			_, err = b.run("qdel", j.id)
		}
	case message.SignalSuspend, message.SignalResume:
		_, err = b.run("qsig", "-s", string(verb), j.id)
	}
	if err != nil {
		return notSubmitted(err)
	}
	return nil
}

func (b *batch) Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	return b.jobs.Statuses(now, jobs, b.entries)
}

// entries asks PBS about jobs. PBS may forget ended jobs: their files have the status.
func (b *batch) entries(jobs []message.Job) (map[string]script.Entry, error) {
	list, err := b.theirs(jobs)
	if err != nil {
		return nil, err
	}
	entries := map[string]script.Entry{}
	for id, j := range list {
		if j.live() {
			entries[id] = j.entry()
		}
	}
	return entries, nil
}

// theirs finds jobs by name: the job that the script says began it, or else the first
// that has not ended.
func (b *batch) theirs(jobs []message.Job) (map[string]job, error) {
	out, err := b.run("qstat", "-f", "-F", "json")
	if err != nil {
		return nil, err
	}
	all, err := readJobs(out)
	if err != nil {
		return nil, err
	}
	found := map[string]job{}
	for _, of := range jobs {
		id, begun := script.BegunBy(of)
		same := slices.DeleteFunc(slices.Clone(all), func(j job) bool { return string(j.Name) != b.mark.Name(of.ID) || begun && j.id != id })
		if len(same) > 0 {
			found[of.ID] = same[max(slices.IndexFunc(same, job.live), 0)]
		}
	}
	return found, nil
}

// live reports whether a job has neither ended nor gone elsewhere.
func (j job) live() bool { return j.State != "F" && j.State != "X" && j.State != "M" }

// entry is the status of a job that has not ended.
func (j job) entry() script.Entry {
	s := script.Entry{State: protocol.JobWaiting}
	switch j.State {
	case "R", "E", "B":
		s.State = protocol.JobRunning
	case "S", "U":
		s.State = protocol.JobSuspended
	}
	s.Start = instant(j.Start)
	s.Ran, _ = clock(j.Used.Wall) // missing or malformed: 0
	s.CPU, _ = clock(j.Used.CPU)
	return s
}

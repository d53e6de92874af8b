package pbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Pauses between two questions to PBS about jobs: one qstat tells of all.
const (
	jobLeast = 500 * time.Millisecond
	jobMost  = 5 * time.Second
)

// JobPace is how often jobs that run are looked at.
func (b *batch) JobPace() queue.Pace { return script.FilesPace() }

// Submit has PBS run a job in the queue of its reservation, as its account. The
// program's words and its environment are arguments of qsub, after "--": PBS starts
// that without a shell.
func (b *batch) Submit(now time.Time, job message.Job) *protocol.Reason {
	if len(b.mark.Name(job.ID)) > maxName {
		return &protocol.Reason{Code: protocol.CodeLimit, Note: fmt.Sprintf("the job's name would have more than %d bytes", maxName)}
	}
	who, known, why := b.jobs.Prepare(now, job, b.stands)
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
	own.program.Prefix, own.program.As = nil, who.Credential // it is to be its account's job
	if _, err := own.run("qsub", args...); err != nil {
		return notSubmitted(err)
	}
	return nil
}

// queueOf is the queue of a reservation that is there and has begun.
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

// notSubmitted is why PBS did not take a job.
func notSubmitted(err error) *protocol.Reason {
	for _, words := range []string{"Unauthorized", "not authorized", "No Permission", "Bad UID"} {
		if strings.Contains(err.Error(), words) {
			return &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
		}
	}
	return queue.Unavailable(err)
}

// Signal suspends, resumes or kills a job. The first two take the rights of an
// operator.
func (b *batch) Signal(now time.Time, of message.Job, verb message.JobSignal) *protocol.Reason {
	list, err := b.theirs([]message.Job{of})
	if err != nil {
		return queue.Unavailable(err)
	}
	b.jobs.Soon()
	j, ok := list[of.ID]
	if !ok || j.over() {
		return &protocol.Reason{Code: protocol.CodeUnknown, Note: "the job does not run"}
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

// Statuses tells how jobs stand.
func (b *batch) Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	return b.jobs.Statuses(now, jobs, b.stands)
}

// stands asks PBS about jobs. Those that are over PBS need not know: their files tell.
func (b *batch) stands(jobs []message.Job) (map[string]script.Stand, error) {
	list, err := b.theirs(jobs)
	if err != nil {
		return nil, err
	}
	stands := map[string]script.Stand{}
	for id, j := range list {
		if !j.over() {
			stands[id] = j.stand()
		}
	}
	return stands, nil
}

// theirs finds jobs by their names: the one that the script says began it, else the
// first that is not over.
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
		slices.SortStableFunc(same, func(a, b job) int { return cmp.Compare(rank(a), rank(b)) })
		if len(same) > 0 {
			found[of.ID] = same[0]
		}
	}
	return found, nil
}

// rank puts jobs that are over last.
func rank(j job) int {
	if j.over() {
		return 1
	}
	return 0
}

// over reports whether a job has ended or gone elsewhere.
func (j job) over() bool { return j.State == "F" || j.State == "X" || j.State == "M" }

// stand is how a job stands that is not over.
func (j job) stand() script.Stand {
	s := script.Stand{State: protocol.JobWaiting}
	switch j.State {
	case "R", "E", "B":
		s.State = protocol.JobRunning
	case "S", "U":
		s.State = protocol.JobSuspended
	}
	s.Start = instant(j.Start)
	s.Ran, _ = clock(j.Used.Wall) // not told, or nonsense: nothing
	s.CPU, _ = clock(j.Used.CPU)
	return s
}

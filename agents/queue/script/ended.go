package script

import (
	"cmp"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Exit codes of a job that timeout(1), SIGTERM or SIGKILL ended.
const (
	codeTimeout = 124
	codeKill    = 128 + 9
	codeTerm    = 128 + 15
)

// How is the way in which a job ended, as a batch system reports it.
type How int

// The ways in which a job ends.
const (
	Exited    How = iota // by itself
	Cancelled            // by a user or administrator
	Limit                // by a time limit
	Failed               // with its machine, or by the batch system
)

// Report is the batch system's report on a job that has ended.
type Report struct {
	How        How
	Start, End time.Time     // as far as known
	Exit       int           // of an exited job: 0..255
	Ran        time.Duration // without suspended time
	CPU        time.Duration // so far; 0: not reported
	Note       string        // one line for people
}

// ended is the status of a job that the batch system reports as ended. The report
// counts; the job's own files add what the batch system does not measure.
func (t traces) ended(now time.Time, job message.Job, r Report) protocol.JobStatus {
	if r.How == Exited && !t.done && now.Sub(r.End) < fileGrace && now.Sub(r.End) >= 0 {
		return protocol.JobStatus{State: protocol.JobRunning, Started: r.Start, Usage: t.running(now, job, r)}
	}
	whole := r
	if r.How != Exited && t.byItself(job, r) {
		ran := min(t.stopped.Sub(t.started), r.Ran+ticks) // without suspended time
		r = t.report()
		r.Ran = ran
	}
	s := protocol.JobStatus{Started: r.Start, Ended: r.End, Usage: t.usage(job, r)}
	if t.done && t.stopped.Sub(r.End).Abs() < 2*ticks {
		s.Started, s.Ended = t.started, t.stopped
	}
	last := job.Slot.End.Add(idle(job, whole))
	s.State, s.Note = t.state(r, s.Ended.Before(last.Add(-endGrace)))
	if s.State == protocol.JobExited {
		s.Exit = r.Exit
	}
	if s.Started.IsZero() || !t.begun {
		s.Started, s.Usage = time.Time{}, protocol.Usage{}
	}
	return s
}

// byItself reports whether the job's own files show that it ended by itself, in its
// slot, before the batch system noticed and ended a finished job. The files must agree
// with the report, since the job's account can write them.
func (t traces) byItself(job message.Job, r Report) bool {
	last := job.Slot.End.Add(idle(job, r))
	within := !t.started.Before(r.Start.Add(-2*ticks)) && !t.stopped.Before(t.started) && !t.stopped.After(r.End.Add(2*ticks))
	return t.done && !t.asked && !t.unwanted && within && t.stopped.Before(last.Add(-endGrace))
}

// idle is how long a job whose end moves by that time was suspended.
func idle(job message.Job, r Report) time.Duration {
	if !job.Stretch || r.Start.IsZero() || r.Ran <= 0 {
		return 0
	}
	return max(r.End.Sub(r.Start)-r.Ran, 0)
}

// report derives the end of a job from its own files alone.
func (t traces) report() Report {
	return Report{Start: t.started, End: t.stopped, Exit: t.code, Ran: t.stopped.Sub(t.started)}
}

// state says why a job ended, in time or not, with a line for people.
func (t traces) state(r Report, inTime bool) (protocol.JobState, string) {
	cut := r.Exit == codeKill || r.Exit == codeTimeout
	switch {
	case r.How == Limit, r.How == Cancelled && !inTime && !t.unwanted:
		return expired(t)
	case r.How == Failed:
		return protocol.JobLost, cmp.Or(r.Note, "the batch system ended it")
	case t.unwanted && (r.How == Cancelled || !t.done || t.asked || cut || r.Exit == codeTerm):
		return protocol.JobKilled, ""
	case r.How == Cancelled:
		return protocol.JobLost, "it was cancelled in the batch system, not by its owner"
	case !t.begun:
		return protocol.JobLost, "the batch system started it on a machine that cannot write to the job's directory"
	case !inTime && (t.asked || cut):
		return expired(t)
	}
	return protocol.JobExited, r.Note
}

// expired is the status of a job that ended with its slot. If it had not begun, it is lost.
func expired(t traces) (protocol.JobState, string) {
	if !t.begun {
		return protocol.JobLost, "the batch system did not start it before its slot ended"
	}
	return protocol.JobExpired, ""
}

// forgotten is the status, from its own files, of an ended job that the batch system has forgotten.
func (t traces) forgotten(job message.Job) protocol.JobStatus {
	return t.ended(t.stopped.Add(2*fileGrace), job, t.report())
}

// running is the usage of a running job so far, from the batch system or the script, and
// at most what its cores can have used.
func (t traces) running(now time.Time, job message.Job, r Report) protocol.Usage {
	if r.Ran == 0 && t.begun {
		r.Ran = now.Sub(t.began) // the batch system does not report it
	}
	u := protocol.Usage{Wall: max(r.Ran, 0), Share: share(job)}
	u.CPU = min(max(t.soFar, r.CPU, 0), time.Duration(job.Slot.Cores)*(u.Wall+ticks))
	return u
}

// usage is what a job used. The batch system knows its run time without suspensions; the script
// knows fractions of a second and the CPU time. Impossible values are cut down to possible ones.
func (t traces) usage(job message.Job, r Report) protocol.Usage {
	u := protocol.Usage{Wall: max(r.Ran, 0), Share: share(job)}
	if t.done {
		u.Wall = max(min(t.stopped.Sub(t.started), r.Ran+ticks), r.Ran-ticks, 0)
		u.CPU = min(t.cpu, time.Duration(job.Slot.Cores)*(u.Wall+ticks))
	}
	return u
}

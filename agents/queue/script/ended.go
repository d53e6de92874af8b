package script

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// What a job ends with that was ended by timeout(1), or by SIGTERM and SIGKILL.
const (
	codeTimeout = 124
	codeKill    = 128 + 9
	codeTerm    = 128 + 15
)

// How is in what way a job ended, as a batch system says.
type How int

// The ways.
const (
	Exited    How = iota // by itself
	Cancelled            // by somebody's word
	Limit                // by a limit of time
	Failed               // with its machine, or by the batch system's own will
)

// Report is what a batch system says of a job that is over.
type Report struct {
	How        How
	Start, End time.Time     // as far as it tells
	Exit       int           // of one that exited: 0..255
	Ran        time.Duration // without the time that it was suspended
	CPU        time.Duration // so far; 0: it does not tell
	Note       string        // one line for people
}

// ended is how a job ended of which the batch system says that it is over. Its word
// counts; the job's own files add what it does not measure.
func (t traces) ended(now time.Time, job message.Job, r Report) protocol.JobStatus {
	if r.How == Exited && !t.done && now.Sub(r.End) < fileGrace && now.Sub(r.End) >= 0 {
		return protocol.JobStatus{State: protocol.JobRunning, Started: r.Start, Usage: t.running(now, job, r)}
	}
	if r.How != Exited && t.byItself(job, r) {
		ran := min(t.stopped.Sub(t.started), r.Ran+ticks) // without the time that it was suspended
		r = t.report()
		r.Ran = ran
	}
	s := protocol.JobStatus{Started: r.Start, Ended: r.End, Usage: t.usage(job, r)}
	if t.done && t.stopped.Sub(r.End).Abs() < 2*ticks {
		s.Started, s.Ended = t.started, t.stopped
	}
	s.State, s.Note = t.state(job, r, s.Ended)
	if s.State == protocol.JobExited {
		s.Exit = r.Exit
	}
	if s.Started.IsZero() || !t.begun {
		s.Started, s.Usage = time.Time{}, protocol.Usage{}
	}
	return s
}

// byItself reports whether the job's own files say that it ended by itself, in its slot:
// then its batch system has only been late to see it, and ended what was over. They have
// to fit what that says, since the job's account can write them.
func (t traces) byItself(job message.Job, r Report) bool {
	within := !t.started.Before(r.Start.Add(-2*ticks)) && !t.stopped.Before(t.started) && !t.stopped.After(r.End.Add(2*ticks))
	return t.done && !t.asked && !t.unwanted && within && t.stopped.Before(job.Slot.End.Add(-endGrace))
}

// report is how a job ended by its own files alone.
func (t traces) report() Report {
	return Report{Start: t.started, End: t.stopped, Exit: t.code, Ran: t.stopped.Sub(t.started)}
}

// state is why a job is over, and a line for people.
func (t traces) state(job message.Job, r Report, ended time.Time) (protocol.JobState, string) {
	inTime := ended.Before(job.Slot.End.Add(-endGrace))
	cut := r.Exit == codeKill || r.Exit == codeTimeout
	switch {
	case r.How == Limit, r.How == Cancelled && !inTime && !t.unwanted:
		return expired(t)
	case r.How == Failed:
		return protocol.JobLost, orElse(r.Note, "the batch system ended it")
	case t.unwanted && (r.How == Cancelled || !t.done || t.asked || cut || r.Exit == codeTerm):
		return protocol.JobKilled, ""
	case r.How == Cancelled:
		return protocol.JobLost, "it was cancelled in the batch system, and not by its owner"
	case !t.begun:
		return protocol.JobLost, "the batch system began it where the job's directory cannot be seen or written"
	case !inTime && (t.asked || cut):
		return expired(t)
	}
	return protocol.JobExited, r.Note
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// expired is that a job ended with its slot. One that had not begun was not run.
func expired(t traces) (protocol.JobState, string) {
	if !t.begun {
		return protocol.JobLost, "the batch system did not begin it before the end of its slot"
	}
	return protocol.JobExpired, ""
}

// forgotten is how a job ended that the batch system does not know any more, as its
// own files tell it.
func (t traces) forgotten(job message.Job) protocol.JobStatus {
	return t.ended(t.stopped.Add(2*fileGrace), job, t.report())
}

// running is what a job that runs has used so far, as far as the batch system or the
// script has told, and no more than its cores can have used.
func (t traces) running(now time.Time, job message.Job, r Report) protocol.Usage {
	if r.Ran == 0 && t.begun {
		r.Ran = now.Sub(t.began) // of a batch system that does not tell
	}
	u := protocol.Usage{Wall: max(r.Ran, 0), Share: share(job)}
	u.CPU = min(max(t.soFar, r.CPU, 0), time.Duration(job.Slot.Cores)*(u.Wall+ticks))
	return u
}

// usage is what a job used. The batch system says how long it ran, without the time that it
// was suspended; the script knows the fraction of a second, and the CPU time. What
// cannot be is cut down to what can.
func (t traces) usage(job message.Job, r Report) protocol.Usage {
	u := protocol.Usage{Wall: max(r.Ran, 0), Share: share(job)}
	if t.done {
		u.Wall = max(min(t.stopped.Sub(t.started), r.Ran+ticks), r.Ran-ticks, 0)
		u.CPU = min(t.cpu, time.Duration(job.Slot.Cores)*(u.Wall+ticks))
	}
	return u
}

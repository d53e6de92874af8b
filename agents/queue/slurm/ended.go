package slurm

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

// ended is how a job ended of which Slurm says that it is over. Slurm's word
// counts; the job's own files add what Slurm does not measure.
func (t traces) ended(now time.Time, job message.Job, r record) protocol.JobStatus {
	byItself := r.is("COMPLETED", "FAILED", "OUT_OF_MEMORY")
	if byItself && t.begun && !t.done && now.Sub(r.end) < fileGrace && now.Sub(r.end) >= 0 {
		return protocol.JobStatus{State: protocol.JobRunning, Started: r.start, Usage: protocol.Usage{Wall: r.ran, Share: share(job)}}
	}
	s := protocol.JobStatus{Started: r.start, Ended: r.end, Usage: t.usage(job, r)}
	if t.done && t.stopped.Sub(r.end).Abs() < 2*ticks {
		s.Started, s.Ended = t.started, t.stopped
	}
	s.State, s.Note = t.state(job, r, s.Ended)
	if s.State == protocol.JobExited {
		s.Exit = r.exit()
	}
	if s.Started.IsZero() || !t.begun {
		s.Started, s.Usage = time.Time{}, protocol.Usage{}
	}
	return s
}

// state is why a job is over, and a line for people.
func (t traces) state(job message.Job, r record, ended time.Time) (protocol.JobState, string) {
	inTime := ended.Before(job.Slot.End.Add(-endGrace))
	cut := r.exit() == codeKill || r.exit() == codeTimeout
	switch {
	case r.is("TIMEOUT", "DEADLINE"), r.is("CANCELLED") && !inTime && !t.unwanted:
		return expired(t)
	case r.is("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"):
		return protocol.JobLost, "Slurm ended it: " + r.state
	case t.unwanted && (r.is("CANCELLED") || !t.done || t.asked || cut || r.exit() == codeTerm):
		return protocol.JobKilled, ""
	case r.is("CANCELLED"):
		return protocol.JobLost, "it was cancelled in Slurm, and not by its owner"
	case !t.begun:
		return protocol.JobLost, "Slurm began it on a node that does not see the job's directory"
	case !inTime && (t.asked || cut):
		return expired(t)
	case r.is("OUT_OF_MEMORY"):
		return protocol.JobExited, "it was out of memory"
	}
	return protocol.JobExited, ""
}

// expired is that a job ended with its slot. One that had not begun was not run.
func expired(t traces) (protocol.JobState, string) {
	if !t.begun {
		return protocol.JobLost, "Slurm did not begin it before the end of its slot"
	}
	return protocol.JobExpired, ""
}

// forgotten is how a job ended that Slurm does not list any more, as its own files
// tell it.
func (t traces) forgotten(job message.Job) protocol.JobStatus {
	r := record{state: "COMPLETED", start: t.started, end: t.stopped, wait: t.code << 8, ran: t.stopped.Sub(t.started)}
	return t.ended(t.stopped.Add(2*fileGrace), job, r)
}

// usage is what a job used. Slurm says how long it ran, without the time that it
// was suspended; the script knows the fraction of a second, and the CPU time. What
// cannot be is cut down to what can.
func (t traces) usage(job message.Job, r record) protocol.Usage {
	u := protocol.Usage{Wall: max(r.ran, 0), Share: share(job)}
	if t.done {
		u.Wall = max(min(t.stopped.Sub(t.started), r.ran+ticks), r.ran-ticks, 0)
		u.CPU = min(t.cpu, time.Duration(job.Slot.Cores)*(u.Wall+ticks))
	}
	return u
}

package user

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// Exit codes of a run whose program did not end by itself, like those of shells and
// timeout(1). docs/JOBS.md lists them.
const (
	ExitExpired = 124 // it was ended with its slot
	ExitNever   = 125 // it never ran, or was lost
	ExitKilled  = 137 // its owner ended it
)

// StateOf is the state of a unit of a run, in one word.
func StateOf(u message.RunUnit) string {
	s := u.Status
	if s.Job.State != "" && s.Stage != message.StageFailed {
		return string(s.Job.State)
	}
	return string(s.Stage)
}

// summary is the state and the exit code of a whole run: the state of the unit that is
// furthest behind, or both of the first unit that failed.
func summary(v message.Run) (state string, exit int, over bool) {
	over, least := true, -1
	for _, u := range v.Units {
		over = over && u.Status.Stage.Over()
		if at := rank(u.Status.Stage); least < 0 || at < least {
			least, state = at, StateOf(u)
		}
	}
	if !over {
		return state, 0, false
	}
	for _, u := range v.Units {
		if code := exitOf(u); code != 0 {
			return StateOf(u), code, true
		}
	}
	return state, 0, true
}

// exitOf is the exit code of a unit that is over.
func exitOf(u message.RunUnit) int {
	switch {
	case u.Status.Job.State == protocol.JobExited:
		return u.Status.Job.Exit
	case u.Status.Job.State == protocol.JobKilled:
		return ExitKilled
	case u.Status.Job.State == protocol.JobExpired:
		return ExitExpired
	}
	return ExitNever
}

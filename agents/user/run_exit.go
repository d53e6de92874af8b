package user

import "ramp/protocol/message"

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
		if code := u.Status.Job.ExitCode(); code != 0 {
			return StateOf(u), code, true
		}
	}
	return state, 0, true
}

package protocol

import (
	"fmt"
	"time"
)

// JobState is how a job stands with its batch system. The words are stored and
// sent.
type JobState string

// The states of a job. The last four are final.
const (
	JobWaiting   JobState = "waiting" // accepted, and not begun
	JobRunning   JobState = "running"
	JobSuspended JobState = "suspended"
	JobExited    JobState = "exited"  // it ended by itself; Exit says how
	JobKilled    JobState = "killed"  // at its owner's word
	JobExpired   JobState = "expired" // by the end of its slot
	JobLost      JobState = "lost"    // with its machine, or nobody knows what became of it
)

// Known reports whether s is one of the states.
func (s JobState) Known() bool {
	switch s {
	case JobWaiting, JobRunning, JobSuspended, JobExited, JobKilled, JobExpired, JobLost:
		return true
	}
	return false
}

// Over reports whether a job in this state has stopped for good.
func (s JobState) Over() bool {
	return s == JobExited || s == JobKilled || s == JobExpired || s == JobLost
}

// JobStatus is what a batch system says of a job. Of one that is over it is the
// report at the job's end: what it used stands in Usage.
type JobStatus struct {
	State   JobState  `json:"state"`
	Exit    int       `json:"exit"`             // of one that exited: 0..255; 128 and the signal's number if by one
	Started time.Time `json:"started,omitzero"` // when it began; zero: it has not, or nobody knows
	Ended   time.Time `json:"ended,omitzero"`   // of one that is over
	Usage   Usage     `json:"usage"`            // so far; a driver that cannot measure CPU tells zero, and so with Share
	Memory  int64     `json:"memory,omitempty"` // most bytes resident at once; 0: not measured
	Note    string    `json:"note,omitempty"`   // one line for people: why it was lost or refused
}

// Success reports whether the job did what it was to do.
func (s JobStatus) Success() bool { return s.State == JobExited && s.Exit == 0 }

// MaxExit is the greatest exit code.
const MaxExit = 255

// Validate names what no batch system can say.
func (s JobStatus) Validate() error {
	switch {
	case !s.State.Known():
		return fmt.Errorf("state %.32q: it is unknown", string(s.State))
	case s.Exit < 0 || s.Exit > MaxExit:
		return fmt.Errorf("exit code %d: want 0..%d", s.Exit, MaxExit)
	case s.Memory < 0:
		return fmt.Errorf("memory of %d bytes: want 0 or more", s.Memory)
	}
	return s.Usage.Validate()
}

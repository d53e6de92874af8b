package protocol

import (
	"fmt"
	"slices"
	"time"
)

// JobState is the state of a job in its batch system. The values are stored and sent.
type JobState string

// The states of a job. The last four are final.
const (
	JobWaiting   JobState = "waiting" // accepted but not started
	JobRunning   JobState = "running"
	JobSuspended JobState = "suspended"
	JobExited    JobState = "exited"  // it ended by itself, with code Exit
	JobKilled    JobState = "killed"  // on its owner's request
	JobExpired   JobState = "expired" // at the end of its slot
	JobLost      JobState = "lost"    // with its machine, or without a trace
)

// Known reports whether s is one of the states.
func (s JobState) Known() bool {
	return slices.Contains([]JobState{JobWaiting, JobRunning, JobSuspended, JobExited, JobKilled, JobExpired, JobLost}, s)
}

// Over reports whether the state is final.
func (s JobState) Over() bool {
	return s == JobExited || s == JobKilled || s == JobExpired || s == JobLost
}

// JobStatus is a batch system's report about a job. Once the job has ended it is
// final, and Usage is complete.
type JobStatus struct {
	State   JobState  `json:"state"`
	Exit    int       `json:"exit"`             // exit code, 0..255; 128 plus its number after a signal
	Started time.Time `json:"started,omitzero"` // zero: not yet, or unknown
	Ended   time.Time `json:"ended,omitzero"`   // zero: not yet
	Usage   Usage     `json:"usage"`            // so far; zero CPU or Share if the driver cannot measure it
	Memory  int64     `json:"memory,omitempty"` // most bytes resident at once; 0: not measured
	Note    string    `json:"note,omitempty"`   // one line for people: why the job was lost or refused
}

// Success reports whether the job exited without an error.
func (s JobStatus) Success() bool { return s.State == JobExited && s.Exit == 0 }

// MaxExit is the greatest exit code.
const MaxExit = 255

// Validate reports an impossible status.
func (s JobStatus) Validate() error {
	switch {
	case !s.State.Known():
		return fmt.Errorf("unknown state %.32q", string(s.State))
	case s.Exit < 0 || s.Exit > MaxExit:
		return fmt.Errorf("exit code %d: want 0..%d", s.Exit, MaxExit)
	case s.Memory < 0:
		return fmt.Errorf("memory of %d bytes: want 0 or more", s.Memory)
	}
	return s.Usage.Validate()
}

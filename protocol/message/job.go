package message

import (
	"time"

	"ramp/protocol"
)

// Job is a program that a batch system is to run in a reservation. What runs is
// what the site made of a buyer's request; nothing in it goes through a shell.
type Job struct {
	ID          string        // the role's; it is carried as the job's mark, and submitted again it is the same job
	Reservation string        // in which it runs
	Slot        protocol.Slot // of the reservation; the job does not outlive it
	Argv        []string      // program and arguments
	Env         []string      // NAME=value, beside what the batch system sets
	User        string        // local account; empty: the agent's own
	Dir         string        // the job's directory: it runs in Dir/work, and what it prints is in Dir/stdout and Dir/stderr
	Memory      int64         // most bytes resident; 0: not limited
	FileSize    int64         // most bytes of a file that it writes; 0: not limited
}

// Submit asks that a job begin (local, request). The answer is JobChanged, or
// JobRefused.
type Submit struct{ Job Job }

// JobSignal is what is done to a job. The words are stored and sent.
type JobSignal string

// The signals.
const (
	SignalSuspend JobSignal = "suspend"
	SignalResume  JobSignal = "resume"
	SignalKill    JobSignal = "kill"
)

// Known reports whether s is one of the signals.
func (s JobSignal) Known() bool {
	return s == SignalSuspend || s == SignalResume || s == SignalKill
}

// Signal asks that something be done to a job (local, request). The answer is
// JobChanged, or JobRefused.
type Signal struct {
	ID   string
	Verb JobSignal
}

// JobQuery asks how a job that was submitted stands (local, query-ref). The answer
// is JobChanged, or JobRefused with unknown.
type JobQuery struct{ Job Job }

// JobChanged says how a job stands (inform), when asked and whenever its state
// changes. With a state that is over it is the report at the job's end.
type JobChanged struct {
	ID     string
	At     time.Time
	Status protocol.JobStatus
}

// JobRefused says why a request about a job was not carried out (inform).
// Unavailable may be asked again; anything else is final.
type JobRefused struct {
	ID     string
	Verb   JobSignal // empty: the submission, or the question
	Reason protocol.Reason
}

// Kind names the body; local bodies are never on the wire.
func (Submit) Kind() string     { return "local-submit" }
func (Signal) Kind() string     { return "local-signal" }
func (JobQuery) Kind() string   { return "local-job-query" }
func (JobChanged) Kind() string { return "local-job-changed" }
func (JobRefused) Kind() string { return "local-job-refused" }

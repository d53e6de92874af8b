package message

import (
	"time"

	"ramp/protocol"
)

// Job is a program for a batch system to run in a reservation. The site derives it
// from a buyer's request; no part of it goes through a shell.
type Job struct {
	ID          string        // chosen by the role; it marks the job, and submitting it again gives the same job
	Reservation string        // in which the job runs
	Slot        protocol.Slot // of the reservation; the job does not outlive it
	Argv        []string      // program and arguments
	Env         []string      // NAME=value, in addition to those of the batch system
	User        string        // local account; empty: the agent's own
	Home        string        // of the program; empty: that of its account
	Dir         string        // the job's directory: it runs in Dir/work and prints to Dir/stdout and Dir/stderr
	Stretch     bool          // its end moves by the time for which it is suspended
	Memory      int64         // most bytes resident; 0: no limit
	FileSize    int64         // most bytes of a file that it writes; 0: no limit
}

// Submit asks to start a job (local, request). The answer is JobChanged or JobRefused.
type Submit struct{ Job Job }

// JobSignal is an operation on a job. The values are stored and sent.
type JobSignal string

// The signals.
const (
	SignalSuspend JobSignal = "suspend"
	SignalResume  JobSignal = "resume"
	SignalKill    JobSignal = "kill"
)

// Known reports whether s is one of the signals.
func (s JobSignal) Known() bool { return s == SignalSuspend || s == SignalResume || s == SignalKill }

// Signal asks for an operation on a job (local, request). The answer is JobChanged or JobRefused.
type Signal struct {
	ID   string
	Verb JobSignal
}

// JobQuery asks for the state of a submitted job (local, query-ref). The answer is
// JobChanged, or JobRefused with code unknown.
type JobQuery struct{ Job Job }

// JobChanged reports the state of a job (inform), on request and after each change.
// With a final state it is the report at the job's end.
type JobChanged struct {
	ID     string
	At     time.Time
	Status protocol.JobStatus
}

// JobRefused reports why a request about a job was not carried out (inform). With
// code unavailable the request may be repeated; any other code is final.
type JobRefused struct {
	ID     string
	Verb   JobSignal // empty: the submission or the query
	Reason protocol.Reason
}

// Kind names the body; local bodies are never on the wire.
func (Submit) Kind() string     { return "local-submit" }
func (Signal) Kind() string     { return "local-signal" }
func (JobQuery) Kind() string   { return "local-job-query" }
func (JobChanged) Kind() string { return "local-job-changed" }
func (JobRefused) Kind() string { return "local-job-refused" }

// SlotQuery asks the batch system how a reservation's cores were used (local,
// request). The answer is SlotUsed.
type SlotQuery struct {
	ID   string
	Slot protocol.Slot // as sold: batch systems forget reservations that have ended
}

// SlotUsed reports on the jobs of a reservation (inform), on request and, if the
// batch system can, when they have stopped. A final status never changes.
type SlotUsed struct {
	ID     string
	At     time.Time
	Status protocol.JobStatus

	Measured protocol.Measured // source of the usage in Status
}

// Kind names the body; local bodies are never on the wire.
func (SlotQuery) Kind() string { return "local-slot-query" }
func (SlotUsed) Kind() string  { return "local-slot-used" }

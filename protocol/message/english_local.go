package message

import (
	"time"

	"ramp/protocol"
)

// JobSubmit orders the user agent to offer a job to its home (local).
type JobSubmit struct {
	ID      string
	Name    string // for people
	Home    protocol.AgentID
	Level   string // its name in the rules of the federation
	Terms   JobTerms
	Program Program
}

// JobAsk orders the user agent to ask a job's home for all that it knows (local).
type JobAsk struct{ Row JobRow }

// JobRow is a job as its owner's agent keeps it; the JSON names are stored.
type JobRow struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Home     protocol.AgentID `json:"home"`
	Level    string           `json:"level"`
	Terms    JobTerms         `json:"terms"`
	Program  Program          `json:"program"`
	Created  time.Time        `json:"created"`
	Known    bool             `json:"known,omitempty"` // its home has it
	Progress JobProgress      `json:"progress"`
	Refused  protocol.Code    `json:"refused,omitempty"` // why its home does not take it
	Why      string           `json:"why,omitempty"`
	History  *JobHistory      `json:"history,omitempty"` // as its home told it last
	Heard    time.Time        `json:"heard,omitzero"`    // when it did
	Ended    time.Time        `json:"ended,omitzero"`    // when its end was heard of

	Withdrawn bool `json:"withdrawn,omitempty"` // by its owner
}

// Over reports whether nothing more will come.
func (r JobRow) Over() bool { return r.Refused != "" || r.Progress.State.Over() }

// Kind names the body; local bodies are never on the wire.
func (JobSubmit) Kind() string { return "local-job-submit" }
func (JobAsk) Kind() string    { return "local-job-ask" }

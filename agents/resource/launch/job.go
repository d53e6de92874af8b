package launch

import (
	"encoding/json"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// job is one launch; the JSON names are stored.
type job struct {
	ID           string                `json:"-"` // the record's key
	User         protocol.AgentID      `json:"user"`
	Conversation string                `json:"conversation"`
	Contract     protocol.ContractID   `json:"contract"`
	Unit         int                   `json:"unit"`
	Units        int                   `json:"units"`           // of the run
	Place        int                   `json:"place,omitempty"` // its number in the run, from 1, if not Unit + 1
	Launch       string                `json:"launch"`
	Number       int                   `json:"number"` // of the launches of its unit, from 1
	Asked        string                `json:"asked"`  // fingerprint of the request, to recognize a repetition
	Reservation  string                `json:"reservation"`
	Slot         protocol.Slot         `json:"slot"`
	Argv         []string              `json:"argv"`
	Account      string                `json:"account,omitempty"`
	Pool         []string              `json:"pool,omitempty"` // of accounts: it gets one when it begins
	Inputs       []protocol.StagedFile `json:"inputs,omitempty"`
	Peers        []message.Peer        `json:"peers,omitempty"`
	Stage        message.LaunchStage   `json:"stage"`
	Missing      int                   `json:"missing,omitempty"`
	Status       protocol.JobStatus    `json:"status"`
	Outputs      []protocol.StagedFile `json:"outputs,omitempty"`
	Keep         time.Time             `json:"keep,omitzero"`
	Why          string                `json:"why,omitempty"`
	Last         bool                  `json:"last,omitempty"`      // its buyer gives the slot back after it
	Fault        bool                  `json:"fault,omitempty"`     // it failed by the site's fault
	Killed       bool                  `json:"killed,omitempty"`    // by its buyer, after it was submitted
	Discarded    bool                  `json:"discarded,omitempty"` // by its buyer: it has no files
	Released     bool                  `json:"released,omitempty"`  // its buyer gave the unit back
	Waits        bool                  `json:"waits,omitempty"`     // for the site's word: Begin
	Batch        string                `json:"batch,omitempty"`     // the batch system's reservation, if not Reservation

	retryAt   time.Time
	retries   int
	late      bool      // it came so short before the end of its slot that none could begin
	refusal   string    // why the batch system did not take it when it was asked last
	forbidden bool      // the batch system forbids the agent to kill it
	oldAt     time.Time // when it can be forgotten, as filed
	oldIndex  int       // in the heap of those that are over, from 1; 0: it is not in it
}

func (j *job) key() key { return key{j.User, j.Contract, j.Unit, j.Launch} }

func (j *job) save() protocol.Output {
	value, err := json.Marshal(j)
	if err != nil {
		panic(fmt.Sprintf("launch: job %s cannot be encoded: %v", j.ID, err)) // it has only our own types
	}
	return protocol.Output{Save: []protocol.Record{{Table: Table, Key: j.ID, Value: value}}}
}

func readJob(id string, value []byte) (*job, error) {
	j := &job{ID: id}
	if err := json.Unmarshal(value, j); err != nil {
		return nil, fmt.Errorf("journal: table %s: %s: %w", Table, id, err)
	}
	if !j.Stage.Known() || j.Stage == message.StageAsked {
		return nil, fmt.Errorf("journal: table %s: %s: stage %q", Table, id, j.Stage)
	}
	return j, nil
}

// become changes the stage. It panics on an edge that the package comment lacks.
func (j *job) become(next message.LaunchStage) {
	if !edge(j.Stage, next) {
		panic(fmt.Sprintf("launch: job %s cannot go from %q to %q", j.ID, j.Stage, next))
	}
	j.Stage, j.retryAt, j.retries, j.refusal = next, time.Time{}, 0, ""
}

func edge(from, to message.LaunchStage) bool {
	switch from {
	case "":
		return to == message.StageStaging || to == message.StageFailed
	case message.StageStaging:
		return to == message.StageGathering || to == message.StageReady || to == message.StageFailed
	case message.StageGathering:
		return to == message.StageReady || to == message.StageFailed
	case message.StageReady:
		return to == message.StageSubmitting || to == message.StageFailed
	case message.StageSubmitting:
		return to == message.StageSubmitted || to == message.StageFailed || to == message.StageCollecting
	case message.StageSubmitted:
		return to == message.StageCollecting || to == message.StageSubmitting
	case message.StageCollecting:
		return to == message.StageDone
	}
	return false
}

// due is when a launch needs to be woken.
func (j *job) due() time.Time {
	switch j.Stage {
	case message.StageReady:
		if j.Waits {
			return time.Time{}
		}
		return j.Slot.Start
	case message.StageStaging:
		return protocol.Earlier(j.retryAt, j.Slot.End)
	case message.StageGathering:
		return j.Slot.End
	case message.StageDone, message.StageFailed:
		return protocol.Later(protocol.Later(j.Keep, j.Slot.End), j.retryAt) // within the slot the launch's number must not be reused
	}
	return j.retryAt
}

// startTime is how long a site may take to begin a program, in a shorter slot half of that. That one
// does not begin which comes later is not the site's fault: its buyer would pay nothing for a slot
// that it had.
const startTime = time.Minute

const maxDoublings = 6 // RetryFirst doubled so often is above RetryMost

func (j *job) backOff(now time.Time) {
	pause := protocol.RetryMost
	if j.retries < maxDoublings {
		pause = min(pause, protocol.RetryFirst<<j.retries)
	}
	j.retries++
	j.retryAt = now.Add(pause)
}

// early reports whether a kill overtook the launch.
func (j *job) early() bool { return j.Stage == message.StageFailed && j.Asked == "" }

// withheld reports whether the outputs of a job are counted but not delivered yet.
func (j *job) withheld() bool { return j.Stage == message.StageCollecting && !j.Keep.IsZero() }

// discard gives up everything that only the files of a launch need. What remains prevents
// a second begin, answers its buyer, and counts as usage.
func (j *job) discard() {
	j.Discarded = true
	j.Argv, j.Pool, j.Inputs, j.Peers, j.Outputs = nil, nil, nil, nil, nil
	j.Account, j.Conversation, j.Keep = "", "", time.Time{}
}

// submitted reports whether the batch system may have the job.
func (j *job) submitted() bool {
	return j.Stage == message.StageSubmitting || j.Stage == message.StageSubmitted
}

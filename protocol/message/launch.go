package message

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Launch asks a seller to run a program in a sold unit (request, from the user who
// signed the contract). The answer is LaunchStatus (agree) or a Refusal. The same ID
// again means the same launch.
type Launch struct {
	Contract protocol.ContractID
	Unit     int
	ID       string   // chosen by the user
	App      string   // an application of the site; empty: Command
	Params   []Param  // of the application, in order of name
	Command  []string // program and arguments, for users who may run any program
	Inputs   []protocol.StagedFile
	// Place is its place in a run whose units are of several contracts.
	Place Place `json:",omitzero"`
	// Last gives the slot back once the program has ended: no other follows it.
	Last bool `json:",omitempty"`
}

// Intent is what a buyer intends to launch in every unit: enough for a seller to
// decide whether it would run it.
type Intent struct {
	App   string // an application of the site; empty: a command
	Input int64  // bytes of all inputs of one launch
}

// Place is the number of a unit in a run, from 1, and the run's number of units. Zero:
// the run has the units of the contract.
type Place struct {
	Number int `json:"number"`
	Units  int `json:"units"`
}

// Param is a value for an application's parameter.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// LaunchVerb is an operation on a launch. The values are sent.
type LaunchVerb string

// The verbs. Join sends a unit the addresses of the other units of its purchase,
// without which it does not start.
//
// Discard gives up the files of a launch that is over, its outputs included, also those
// that wait for the bank's decision. The site deletes them at once and remembers only that
// the launch was there. The answer lists no outputs.
//
// Release gives the rest of a unit back when none of its launches runs, as if the latest
// had been the Last one. ID names any launch of the unit, or one that will never be: an
// unknown ID never begins. Nothing more is refunded than after a Last launch. A unit in
// which nothing ran is paid as for a program that ended at once: in full, or, if it is
// metered, the least payment of its contract.
const (
	VerbStatus  LaunchVerb = "status"
	VerbJoin    LaunchVerb = "join"
	VerbSuspend LaunchVerb = "suspend"
	VerbResume  LaunchVerb = "resume"
	VerbKill    LaunchVerb = "kill"
	VerbDiscard LaunchVerb = "discard"
	VerbRelease LaunchVerb = "release"
)

// Known reports whether v is one of the verbs.
func (v LaunchVerb) Known() bool {
	return slices.Contains([]LaunchVerb{VerbStatus, VerbJoin, VerbSuspend, VerbResume, VerbKill, VerbDiscard, VerbRelease}, v)
}

// LaunchOrder asks for an operation on a launch (request). The answer is LaunchStatus
// (inform) from before the batch system acts.
type LaunchOrder struct {
	Contract protocol.ContractID
	Unit     int
	ID       string
	Verb     LaunchVerb
	Peers    []Peer // for join: every unit of the purchase, in order
}

// Peer is where and when a unit of a purchase runs.
type Peer struct {
	Unit    int       `json:"unit"`
	Address string    `json:"address"` // from its site: a host name or an IP address
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Cores   int       `json:"cores"`
}

// LaunchStage is the progress of a launch. The values are stored and sent.
type LaunchStage string

// The stages.
const (
	StageAsked      LaunchStage = "asked"      // only on the user's side: the site has not answered
	StageStaging    LaunchStage = "staging"    // inputs are missing
	StageGathering  LaunchStage = "gathering"  // the units do not know each other's addresses yet
	StageReady      LaunchStage = "ready"      // waiting for the slot to begin
	StageSubmitting LaunchStage = "submitting" // the batch system is being asked to run it
	StageSubmitted  LaunchStage = "submitted"  // the batch system has it; Job is its state
	StageCollecting LaunchStage = "collecting" // it has ended, and its outputs are not available yet
	StageDone       LaunchStage = "done"       // it has ended
	StageFailed     LaunchStage = "failed"     // it never ran, because of Why
)

// Known reports whether s is one of the stages.
func (s LaunchStage) Known() bool {
	return slices.Contains([]LaunchStage{StageAsked, StageStaging, StageGathering, StageReady, StageSubmitting, StageSubmitted, StageCollecting, StageDone, StageFailed}, s)
}

// Over reports whether the stage is final.
func (s LaunchStage) Over() bool { return s == StageDone || s == StageFailed }

// LaunchStatus is the state of a launch (agree, inform). A site sends it after each change.
type LaunchStatus struct {
	Contract protocol.ContractID   `json:"contract"`
	Unit     int                   `json:"unit"`
	ID       string                `json:"id"`
	Stage    LaunchStage           `json:"stage"`
	Address  string                `json:"address,omitempty"` // where the unit runs
	Missing  int                   `json:"missing,omitempty"` // inputs that have not arrived
	Job      protocol.JobStatus    `json:"job"`               // from StageSubmitted on
	Outputs  []protocol.StagedFile `json:"outputs,omitempty"` // of StageDone
	Keep     time.Time             `json:"keep,omitzero"`     // end of their storage at the site
	Why      string                `json:"why,omitempty"`     // why it failed, its outputs wait or are not kept, or the batch system refused an order
}

// Kind is the name on the wire.
func (Launch) Kind() string       { return "launch" }
func (LaunchOrder) Kind() string  { return "launch-order" }
func (LaunchStatus) Kind() string { return "launch-status" }

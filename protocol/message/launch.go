package message

import (
	"time"

	"ramp/protocol"
)

// Launch asks a seller to run a program in a unit that was bought (request, from
// the user who signed the contract). The answer is LaunchStatus (agree), or why
// not. Asked again under the same ID it is the same launch.
type Launch struct {
	Contract protocol.ContractID
	Unit     int
	ID       string   // chosen by the user
	App      string   // an application of the site; empty: Command
	Params   []Param  // of the application, in order of name
	Command  []string // program and arguments, for those who may run any
	Inputs   []protocol.StagedFile
	// Place is where it stands in a run whose units are of several contracts.
	Place Place `json:",omitzero"`
}

// Intent is what a buyer means to launch in every unit of what it asks for: as much
// of it as a seller has to know to say whether it would.
type Intent struct {
	App   string // an application of the site; empty: a command
	Input int64  // bytes of all inputs of one launch
}

// Place is the number of a unit in a run, from 1, and how many units that has. Zero:
// the run's are those of the contract.
type Place struct {
	Number int `json:"number"`
	Units  int `json:"units"`
}

// Param is a value for an application's parameter.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// LaunchVerb is what is asked of a launch. The words are sent.
type LaunchVerb string

// The verbs. Join tells a unit of a purchase of several where the others run; it
// does not begin before.
const (
	VerbStatus  LaunchVerb = "status"
	VerbJoin    LaunchVerb = "join"
	VerbSuspend LaunchVerb = "suspend"
	VerbResume  LaunchVerb = "resume"
	VerbKill    LaunchVerb = "kill"
)

// Known reports whether v is one of the verbs.
func (v LaunchVerb) Known() bool {
	switch v {
	case VerbStatus, VerbJoin, VerbSuspend, VerbResume, VerbKill:
		return true
	}
	return false
}

// LaunchOrder asks something of a launch (request). The answer is LaunchStatus
// (inform), as it is before the batch system has done what was asked.
type LaunchOrder struct {
	Contract protocol.ContractID
	Unit     int
	ID       string
	Verb     LaunchVerb
	Peers    []Peer // of join: every unit of the purchase, in order
}

// Peer is where and when a unit of a purchase runs.
type Peer struct {
	Unit    int       `json:"unit"`
	Address string    `json:"address"` // as its site says: a host name or an IP address
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Cores   int       `json:"cores"`
}

// LaunchStage is how far a launch is. The words are stored and sent.
type LaunchStage string

// The stages.
const (
	StageAsked      LaunchStage = "asked"      // the user's side only: the site has not answered
	StageStaging    LaunchStage = "staging"    // inputs are missing
	StageGathering  LaunchStage = "gathering"  // the units do not know each other yet
	StageReady      LaunchStage = "ready"      // it waits for its slot to begin
	StageSubmitting LaunchStage = "submitting" // the batch system is being asked to run it
	StageSubmitted  LaunchStage = "submitted"  // the batch system has it; Job says how it stands
	StageCollecting LaunchStage = "collecting" // it is over, and its outputs are being counted
	StageDone       LaunchStage = "done"       // it is over
	StageFailed     LaunchStage = "failed"     // it never ran; Why says why
)

// Known reports whether s is one of the stages.
func (s LaunchStage) Known() bool {
	switch s {
	case StageAsked, StageStaging, StageGathering, StageReady, StageSubmitting, StageSubmitted, StageCollecting, StageDone, StageFailed:
		return true
	}
	return false
}

// Over reports whether nothing more will happen.
func (s LaunchStage) Over() bool { return s == StageDone || s == StageFailed }

// LaunchStatus is how a launch stands (agree, inform). A site tells it whenever
// it changes.
type LaunchStatus struct {
	Contract protocol.ContractID   `json:"contract"`
	Unit     int                   `json:"unit"`
	ID       string                `json:"id"`
	Stage    LaunchStage           `json:"stage"`
	Address  string                `json:"address,omitempty"` // where the unit runs
	Missing  int                   `json:"missing,omitempty"` // inputs that are not there yet
	Job      protocol.JobStatus    `json:"job"`               // from StageSubmitted on
	Outputs  []protocol.StagedFile `json:"outputs,omitempty"` // of StageDone
	Keep     time.Time             `json:"keep,omitzero"`     // until when the site keeps them
	Why      string                `json:"why,omitempty"`     // of StageFailed; why outputs are not kept; why the batch system does not do what was asked
}

// Kind is the word on the wire.
func (Launch) Kind() string       { return "launch" }
func (LaunchOrder) Kind() string  { return "launch-order" }
func (LaunchStatus) Kind() string { return "launch-status" }

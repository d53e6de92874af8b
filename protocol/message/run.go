package message

import (
	"slices"
	"time"

	"ramp/protocol"
)

// RunInput is a file of the owner's that travels with a run.
type RunInput struct {
	File   protocol.StagedFile `json:"file"`
	Source string              `json:"source"` // its absolute path on the owner's machine
}

// Program is what is to run in every unit of a purchase.
type Program struct {
	App     string     `json:"app,omitempty"`
	Params  []Param    `json:"params,omitempty"`
	Command []string   `json:"command,omitempty"`
	Inputs  []RunInput `json:"inputs,omitempty"`
	Key     string     `json:"key,omitempty"` // the same for the same command, so that it is not bought twice
}

// Run is the owner's view of a program in the units of a purchase; the JSON names
// are fixed.
type Run struct {
	ID        string              `json:"id"` // of the purchase
	Name      string              `json:"name"`
	Contract  protocol.ContractID `json:"contract"`
	Created   time.Time           `json:"created"`
	State     string              `json:"state"` // the words of LaunchStage or protocol.JobState of the unit that is least far
	Exit      int                 `json:"exit"`  // of the whole, once it is over: see docs/JOBS.md
	Over      bool                `json:"over"`
	Fault     string              `json:"fault,omitempty"`   // why its inputs could not be brought there
	Killing   bool                `json:"killing,omitempty"` // its owner wants it ended
	Collected bool                `json:"collected"`         // its outputs were fetched, or the owner does not want them
	Program   Program             `json:"program"`
	Units     []RunUnit           `json:"units"`
}

// RunUnit is the program in one unit.
type RunUnit struct {
	Unit     int              `json:"unit"`
	Launch   string           `json:"launch"`
	Resource string           `json:"resource"`
	Seller   protocol.AgentID `json:"seller"`
	Slot     protocol.Slot    `json:"slot"`
	Status   LaunchStatus     `json:"status"`
	Joined   bool             `json:"joined,omitempty"` // the site was told where the other units are
	Heard    time.Time        `json:"heard,omitzero"`   // when its site last told of it
	// Lost: its site has lost the slot, and another is being bought. Then it runs in
	// the only unit of Contract.
	Lost     bool                `json:"lost,omitempty"`
	Contract protocol.ContractID `json:"contract,omitempty"`
}

// Bought is the contract of a unit of the run, and the unit in it.
func (v Run) Bought(u RunUnit) (protocol.ContractID, int) {
	if u.Contract != "" {
		return u.Contract, 0
	}
	return v.Contract, u.Unit
}

// Moved reports whether a unit was bought again since the run began.
func (v Run) Moved() bool {
	return slices.ContainsFunc(v.Units, func(u RunUnit) bool { return u.Contract != "" })
}

// RunControl is the owner's word on a run (local): a verb other than join, for
// all its units.
type RunControl struct {
	ID   string
	Verb LaunchVerb
}

// RunCollected says that the owner has, or does not want, what a run has left
// (local).
type RunCollected struct{ ID string }

// RunProgress tells the owner how a run stands (local, inform).
type RunProgress struct{ Run Run }

// Kind names the body; local bodies are never on the wire.
func (RunControl) Kind() string   { return "local-run-control" }
func (RunCollected) Kind() string { return "local-run-collected" }
func (RunProgress) Kind() string  { return "local-run-progress" }

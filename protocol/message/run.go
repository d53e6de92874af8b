package message

import (
	"slices"
	"time"

	"ramp/protocol"
)

// RunInput is an input file of a run, from the owner's machine.
type RunInput struct {
	File   protocol.StagedFile `json:"file"`
	Source string              `json:"source"` // its absolute path on the owner's machine
}

// Program is the program to run in every unit of a purchase.
type Program struct {
	App     string   `json:"app,omitempty"`
	Params  []Param  `json:"params,omitempty"`
	Command []string `json:"command,omitempty"`
	// Commands are the commands of the units, in order, instead of Command.
	Commands [][]string `json:"commands,omitempty"`
	// Outputs are patterns of the files to fetch, as of path.Match; empty: all.
	Outputs []string `json:"outputs,omitempty"`
	// Array means that the units run the indexes of an array: each alone, whatever
	// happens to the others, and each index in a directory of its own.
	Array  bool       `json:"array,omitempty"`
	Inputs []RunInput `json:"inputs,omitempty"`
	Key    string     `json:"key,omitempty"` // the same for the same command, so that a retry does not buy twice
	// Detached: its command does not wait for the end, so a repeated one is a new order.
	Detached bool `json:"detached,omitempty"`
}

// Of is the command of a unit.
func (p Program) Of(unit int) []string {
	if unit < len(p.Commands) {
		return p.Commands[unit]
	}
	return p.Command
}

// Run is the owner's view of a program in the units of a purchase; the JSON names are fixed.
type Run struct {
	ID        string              `json:"id"` // of the purchase
	Name      string              `json:"name"`
	Contract  protocol.ContractID `json:"contract"`
	Created   time.Time           `json:"created"`
	State     string              `json:"state"` // LaunchStage or protocol.JobState of the slowest unit
	Exit      int                 `json:"exit"`  // of the whole run, once it is over: see docs/JOBS.md
	Over      bool                `json:"over"`
	Fault     string              `json:"fault,omitempty"`   // why its inputs could not be copied
	Killing   bool                `json:"killing,omitempty"` // its owner has ordered to kill it
	Collected bool                `json:"collected"`         // its outputs were fetched, or the owner declined them
	Program   Program             `json:"program"`
	Units     []RunUnit           `json:"units"`
	// Sweep is set if this is an attempt of a sweep's task; Follows if others may follow in its slot.
	Sweep      string `json:"sweep,omitempty"`
	Follows    bool   `json:"follows,omitempty"`
	Discarding bool   `json:"discarding,omitempty"` // its site is to remove its files
	Federation bool   `json:"federation,omitempty"` // only its site suspends and resumes it
}

// RunUnit is the program in one unit.
type RunUnit struct {
	Unit     int              `json:"unit"`
	Launch   string           `json:"launch"`
	Resource string           `json:"resource"`
	Seller   protocol.AgentID `json:"seller"`
	Slot     protocol.Slot    `json:"slot"`
	Status   LaunchStatus     `json:"status"`
	Joined   bool             `json:"joined,omitempty"` // the site knows the addresses of the other units
	Heard    time.Time        `json:"heard,omitzero"`   // time of the last report from its site
	// Lost: its site has lost the slot, and the agent buys another one. Then the
	// program runs in the only unit of Contract.
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

// RunControl is the owner's order to all units of a run (local): a verb other than join.
type RunControl struct {
	ID   string
	Verb LaunchVerb
}

// RunCollected reports that the owner has fetched or declined the outputs of a run (local).
type RunCollected struct{ ID string }

// RunProgress reports the state of a run to the owner (local, inform).
type RunProgress struct{ Run Run }

// Kind names the body; local bodies are never on the wire.
func (RunControl) Kind() string   { return "local-run-control" }
func (RunCollected) Kind() string { return "local-run-collected" }
func (RunProgress) Kind() string  { return "local-run-progress" }

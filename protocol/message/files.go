package message

import "ramp/protocol"

// Prepare asks for a job's directory (local, request, to LocalFiles of a site).
// The answer is Prepared, now and whenever an input has arrived.
type Prepare struct {
	Job    string
	Inputs []protocol.StagedFile
}

// Prepared tells how many inputs are missing (inform), or why there is no place
// for them.
type Prepared struct {
	Job     string
	Missing int
	Why     string
}

// Collect asks what a job has left, but for inputs as they were (local, request).
// The answer is Collected.
type Collect struct {
	Job    string
	Inputs []protocol.StagedFile
}

// Collected lists what a job has left (inform), or why it is not kept.
type Collected struct {
	Job     string
	Outputs []protocol.StagedFile
	Why     string
}

// Discard removes a job's directory with all that is in it (local, request).
// There is no answer.
type Discard struct{ Job string }

// StageIn asks that inputs be brought to a site (local, request, to LocalFiles of
// a user). It is tried until it succeeds, StageStop ends it, or it cannot: then
// there is StageFault.
type StageIn struct {
	Contract protocol.ContractID
	Unit     int
	Launch   string
	Seller   protocol.AgentID
	Inputs   []RunInput
}

// StageStop ends StageIn (local, request).
type StageStop struct{ Launch string }

// StageFault says why inputs cannot be brought to the site (inform): a file that
// is gone or has changed; or, with Again, why they are not there yet.
type StageFault struct {
	Launch string
	Why    string
	Again  bool // it is tried again
}

// Kind names the body; local bodies are never on the wire.
func (Prepare) Kind() string    { return "local-prepare" }
func (Prepared) Kind() string   { return "local-prepared" }
func (Collect) Kind() string    { return "local-collect" }
func (Collected) Kind() string  { return "local-collected" }
func (Discard) Kind() string    { return "local-discard" }
func (StageIn) Kind() string    { return "local-stage-in" }
func (StageStop) Kind() string  { return "local-stage-stop" }
func (StageFault) Kind() string { return "local-stage-fault" }

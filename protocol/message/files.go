package message

import "ramp/protocol"

// Prepare asks for a job's directory (local, request, to LocalFiles of a site). The
// answer is Prepared, at once and after each input arrives.
type Prepare struct {
	Job    string
	Inputs []protocol.StagedFile
}

// Prepared reports how many inputs are missing (inform), or why they cannot be stored.
type Prepared struct {
	Job     string
	Missing int
	Why     string
}

// Collect asks for the files that a job has left, without unchanged inputs (local,
// request). The answer is Collected.
type Collect struct {
	Job    string
	Inputs []protocol.StagedFile
}

// Collected lists the files that a job has left (inform), or why they are not kept.
type Collected struct {
	Job     string
	Outputs []protocol.StagedFile
	Why     string
}

// Discard removes a job's directory and its content (local, request). There is no answer.
type Discard struct{ Job string }

// StageIn asks to copy inputs to a site (local, request, to LocalFiles of a user). The copy is
// retried until it succeeds, StageStop ends it, or it cannot succeed, which StageFault reports.
type StageIn struct {
	Contract protocol.ContractID
	Unit     int
	Launch   string
	Seller   protocol.AgentID
	Inputs   []RunInput
}

// StageStop ends StageIn (local, request).
type StageStop struct{ Launch string }

// StageFault reports why inputs cannot be copied (inform): a file is missing or has
// changed. With Again, it reports why they have not arrived yet.
type StageFault struct {
	Launch string
	Why    string
	Again  bool // it will be retried
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

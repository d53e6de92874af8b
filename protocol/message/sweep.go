package message

import (
	"time"

	"ramp/protocol"
)

// SweepOrder is the owner's order of a sweep (local).
type SweepOrder struct {
	ID     string                `json:"id"`
	Plan   []byte                `json:"plan"`          // a plan.Plan in JSON
	Inputs map[string][]RunInput `json:"inputs"`        // by the words of the plan that name them
	Out    string                `json:"out"`           // an absolute path
	Dir    string                `json:"dir,omitempty"` // of the inputs: an absolute path
}

// Sweep is the owner's view of a sweep; the JSON names are fixed.
type Sweep struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	State     string           `json:"state"` // running, paused, short, done, failed, killed
	Strategy  string           `json:"strategy"`
	Created   time.Time        `json:"created"`
	Deadline  time.Time        `json:"deadline"`
	Budget    protocol.Credits `json:"budget"` // 0: no limit
	Spent     protocol.Credits `json:"spent"`
	Committed protocol.Credits `json:"committed"`
	Currency  string           `json:"currency"`
	Out       string           `json:"out"`
	Predicted SweepForecast    `json:"predicted"`
	Tasks     SweepTasks       `json:"tasks"`
	Resources []SweepResource  `json:"resources"`
	Why       string           `json:"why"`
	Waits     string           `json:"waits,omitempty"` // why the bank has not decided on a lease
	// Strategies are what each strategy would do, of a sweep that is only planned, with the least
	// budget and the earliest deadline that would do, and what it costs at most at this deadline.
	Strategies    []SweepForecast  `json:"strategies,omitempty"`
	LeastBudget   protocol.Credits `json:"least_budget,omitempty"`
	MostBudget    protocol.Credits `json:"most_budget,omitempty"`
	LeastDeadline time.Time        `json:"least_deadline,omitzero"`
}

// SweepForecast is what a plan comes to.
type SweepForecast struct {
	Strategy string           `json:"strategy,omitempty"`
	Finish   time.Time        `json:"finish,omitzero"`
	Cost     protocol.Credits `json:"cost"` // of the whole sweep
	Left     int              `json:"left"`
}

// SweepTasks counts the tasks of a sweep; they sum to Total.
type SweepTasks struct {
	Total    int `json:"total"`
	Waiting  int `json:"waiting"`
	Assigned int `json:"assigned"`
	Running  int `json:"running"`
	Done     int `json:"done"`
	Failed   int `json:"failed"`
	Left     int `json:"left"` // the plan has no place for them
}

// SweepResource is a site in a sweep.
type SweepResource struct {
	Resource string           `json:"resource"`
	Group    int              `json:"group"` // of equal cost, from 1
	Price    protocol.Credits `json:"price_core_hour"`
	CostTask protocol.Credits `json:"cost_task"`
	Lanes    int              `json:"lanes"`
	RateHour float64          `json:"rate_hour"` // tasks per hour on all lanes
	Measured bool             `json:"measured"`
	Assigned int              `json:"assigned"`
	Running  int              `json:"running"`
	Done     int              `json:"done"`
	Failed   int              `json:"failed"`
	Spent    protocol.Credits `json:"spent"`
	LeftOut  string           `json:"left_out"` // why it gets no tasks now
}

// SweepTask is a task of a sweep.
type SweepTask struct {
	Task       int               `json:"task"`
	Parameters map[string]string `json:"parameters"`
	State      string            `json:"state"`
	Exit       *int              `json:"exit"`
	Attempts   []SweepAttempt    `json:"attempts"`
	Cost       protocol.Credits  `json:"cost"`
}

// SweepAttempt is a launch of a task.
type SweepAttempt struct {
	Attempt  int       `json:"attempt"`
	Lease    string    `json:"lease"`
	Launch   string    `json:"launch"`
	Resource string    `json:"resource"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	Exit     *int      `json:"exit"`
	Why      string    `json:"why,omitempty"`
}

// SweepEntry is a lease in the ledger of a sweep.
type SweepEntry struct {
	Lease    string              `json:"lease"`
	Contract protocol.ContractID `json:"contract"`
	Entry    uint64              `json:"entry"` // of the bank's ledger that settled it
	Resource string              `json:"resource"`
	Slot     protocol.Slot       `json:"slot"`
	Held     protocol.Credits    `json:"held"`
	Paid     protocol.Credits    `json:"paid"`
	Refunded protocol.Credits    `json:"refunded"`
	Tasks    []int               `json:"tasks"`
}

// SweepSet is the owner's change of a sweep; zero values change nothing.
type SweepSet struct {
	ID       string                `json:"id"`
	Deadline time.Time             `json:"deadline,omitzero"`
	Budget   protocol.Credits      `json:"budget,omitempty"`
	Strategy string                `json:"strategy,omitempty"`
	Verb     SweepVerb             `json:"verb,omitempty"`
	Inputs   map[string][]RunInput `json:"-"` // for a retry: those of the order, as they are now
}

// SweepVerb is an order about a sweep.
type SweepVerb string

// The verbs. Retry has the tasks that failed for good run again.
const (
	SweepPause  SweepVerb = "pause"
	SweepResume SweepVerb = "resume"
	SweepKill   SweepVerb = "kill"
	SweepRetry  SweepVerb = "retry"
)

// StageOut asks to fetch what a launch has left into Dir/Name, which appears whole (local, request, to
// LocalFiles of a user). The answer is StagedOut.
type StageOut struct {
	Contract protocol.ContractID
	Unit     int
	Launch   string
	Seller   protocol.AgentID
	Files    []protocol.StagedFile
	Dir      string // an absolute path
	Name     string
}

// StagedOut reports that all has come (inform), or why it cannot. With Again it is tried again; with Here
// the fault is of this machine, such as a full disk.
type StagedOut struct {
	Launch string // or the sweep, about its file
	Why    string
	Again  bool
	Here   bool
}

// SaveFile asks to write a file of a sweep whole (local, request, to LocalFiles of a user). If it cannot be
// written at once, StagedOut says why, and when it has been.
type SaveFile struct {
	Sweep   string
	Path    string
	Content []byte
}

// Kind names the body; local bodies are never on the wire.
func (StageOut) Kind() string  { return "local-stage-out" }
func (StagedOut) Kind() string { return "local-staged-out" }
func (SaveFile) Kind() string  { return "local-save-file" }

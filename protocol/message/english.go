package message

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
)

// Bounds of the messages about a job that sites of a federation send each other. The
// conversation of all these messages is the job's ID.
const (
	MaxLevels   = 4       // of priority; the least is 1
	MaxModules  = 1 << 20 // of a job or a site
	MaxVictims  = MaxLevels - 1
	MaxAuctions = 16 // of a job, in its history; the oldest go first
	MaxSites    = 64 // of a federation
	MaxJobWall  = 366 * 24 * time.Hour
)

// JobNever is the exit code of a job that never ran, as that of a run (docs/JOBS.md).
const JobNever = 125

// JobTerms are what the sites of a federation need to know to bid for a job.
type JobTerms struct {
	Level int              `json:"level"` // 1..MaxLevels; a higher one is more urgent
	Least int              `json:"least"` // modules
	Most  int              `json:"most"`
	Wall  time.Duration    `json:"wall"`  // of its run, without the time for which it is suspended
	Bytes int64            `json:"bytes"` // of its input
	Where protocol.AgentID `json:"where"` // the site near its input
}

// Validate names the wrong term and what is allowed.
func (t JobTerms) Validate() error {
	switch {
	case t.Level < 1 || t.Level > MaxLevels:
		return fmt.Errorf("level %d: want 1..%d", t.Level, MaxLevels)
	case t.Least < 1 || t.Most < t.Least || t.Most > MaxModules:
		return fmt.Errorf("modules %d..%d: want 1 <= LEAST <= MOST <= %d", t.Least, t.Most, MaxModules)
	case t.Wall <= 0 || t.Wall > MaxJobWall:
		return fmt.Errorf("wall time %s: want more than 0 and at most %s", t.Wall, MaxJobWall)
	case t.Bytes < 0:
		return fmt.Errorf("input of %d bytes: want 0 or more", t.Bytes)
	}
	return t.Where.Validate()
}

// JobOffer asks a site to be the home of a job: to auction it among the sites of its
// federation (request, from the job's owner). The answer is JobProgress (agree) or a
// Refusal. The same ID again means the same job.
type JobOffer struct {
	Terms JobTerms
	Level string // the name of its level, which the home knows; empty: the number in Terms counts
}

// JobContract names a sold job where programs and their files need such a name. It differs
// for each award.
func JobContract(home protocol.AgentID, job string, award int) protocol.ContractID {
	sum := sha256.Sum256(fmt.Appendf(nil, "ramp-federation/1\n%s\n%s\n%d", home, job, award))
	return protocol.ContractID(hex.EncodeToString(sum[:]))
}

// AuctionOpen invites the sites to bid for a job until Ends (inform, from its home).
type AuctionOpen struct {
	Rules   string // SHA-256 of the federation's rules file, in hex: sites with other rules do not bid
	Owner   protocol.AgentID
	Terms   JobTerms
	Number  int   // of the auctions of the job, from 1
	Minimum int64 // least value of a bid, in thousandths of a module
	Ends    time.Time
}

// Victims are modules on which jobs of a lower level run.
type Victims struct {
	Level   int `json:"level"`
	Modules int `json:"modules"`
}

// JobBid is what a site would give a job (propose), or withdraws its bid (refuse). It
// reserves nothing. A greater Seq replaces the site's earlier bids.
type JobBid struct {
	Number   int // of the auction
	Seq      int64
	Free     int       // modules on which nothing runs
	Victims  []Victims // in order of level
	Transfer time.Duration
}

// Standing is the best bid so far (inform, from the home).
type Standing struct {
	Number int
	Leader protocol.AgentID // empty: no bid stands
	Value  int64            // in thousandths of a module
	Closed bool             // the job is sold, or nobody can have it any more
}

// JobAward is about an award of a job. A job has one award at a time:
//
//	accept-proposal  home to winner: will you take the job?
//	agree, refuse    winner to home: taken, or not
//	confirm          home to winner: sold, the decision
//	cancel           home to winner: the award is withdrawn
//	query-ref        winner to home: which of the two? Home to winner: how does it stand?
type JobAward struct {
	Award  int    // counts the awards of the job, from 1
	Number int    // the auction
	Seq    int64  // the bid that won
	Why    string // of a refusal, for people
}

// JobState is the progress of a job in a federation. The values are stored, sent and printed.
type JobState string

// The states.
const (
	JobQueued    JobState = "queued"    // its home has it
	JobAuction   JobState = "auction"   // sites bid for it
	JobAwarded   JobState = "awarded"   // its winner was asked
	JobTaken     JobState = "taken"     // the winner agreed; nothing begins yet
	JobStaging   JobState = "staging"   // sold; the winner waits for the input
	JobWaiting   JobState = "waiting"   // the input is there, the modules are not
	JobRunning   JobState = "running"   //
	JobSuspended JobState = "suspended" // a more urgent job has its modules
	JobDone      JobState = "done"      // it has ended by itself
	JobFailed    JobState = "failed"    // it was ended, or lost
	JobReturned  JobState = "returned"  // the winner gives it back: it never began
)

// Known reports whether s is one of the states.
func (s JobState) Known() bool {
	return slices.Contains([]JobState{JobQueued, JobAuction, JobAwarded, JobTaken, JobStaging, JobWaiting, JobRunning, JobSuspended, JobDone, JobFailed, JobReturned}, s)
}

// Over reports whether the state is final.
func (s JobState) Over() bool { return s == JobDone || s == JobFailed }

// JobProgress is how a job stands (agree, inform): to its owner, and from its winner to its home.
type JobProgress struct {
	State     JobState
	Award     int              // 0: it has no winner yet
	Site      protocol.AgentID // the winner
	Got       int              // modules
	Preempted int              // how often
	Ran       time.Duration
	Suspended time.Duration
	Exit      int
	Why       string // for people
}

// JobVerb is an order about a job. The values are sent.
type JobVerb string

// The verbs. Rerun auctions a sold job once more although its winner has not returned
// it: the owner answers for a second run.
const (
	JobShow   JobVerb = "show"
	JobCancel JobVerb = "cancel"
	JobRerun  JobVerb = "rerun"
)

// Known reports whether v is one of the verbs.
func (v JobVerb) Known() bool { return v == JobShow || v == JobCancel || v == JobRerun }

// JobOrder is an order of a job's owner to its home (request). The answer is JobHistory
// (inform) or a Refusal.
type JobOrder struct {
	Verb JobVerb
}

// AuctionBid is a bid in the history of an auction.
type AuctionBid struct {
	Site     protocol.AgentID `json:"site"`
	Seq      int64            `json:"seq"`
	At       time.Time        `json:"at"`
	Bid      int64            `json:"bid"` // value in thousandths of a module
	Free     int              `json:"free"`
	Victims  []Victims        `json:"victims,omitempty"`
	Transfer time.Duration    `json:"transfer"`
}

// AuctionLine is one auction of a job.
type AuctionLine struct {
	Number  int                `json:"n"`
	Length  time.Duration      `json:"ta"`
	Mean    time.Duration      `json:"mean"` // of the runs from which the length follows
	Minimum int64              `json:"minimum"`
	Bids    []AuctionBid       `json:"bids"` // one of each site
	Winner  protocol.AgentID   `json:"winner"`
	Refused []protocol.AgentID `json:"refused,omitempty"` // winners that did not take it
}

// JobHistory is all that a home knows of a job.
type JobHistory struct {
	Terms    JobTerms
	Progress JobProgress
	Auctions []AuctionLine
}

// Kind is the name on the wire.
func (JobOffer) Kind() string    { return "job-offer" }
func (AuctionOpen) Kind() string { return "auction-open" }
func (JobBid) Kind() string      { return "job-bid" }
func (Standing) Kind() string    { return "standing" }
func (JobAward) Kind() string    { return "job-award" }
func (JobProgress) Kind() string { return "job-progress" }
func (JobOrder) Kind() string    { return "job-order" }
func (JobHistory) Kind() string  { return "job-history" }

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

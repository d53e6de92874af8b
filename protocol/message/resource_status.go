package message

import (
	"time"

	"ramp/protocol"
)

// Sales is whether a resource sells.
type Sales string

// What a resource's sales can be. Sold slots are honoured in every one.
const (
	SalesOpen    Sales = "open"
	SalesPaused  Sales = "paused"  // goes on by itself
	SalesDrained Sales = "drained" // goes on when its owner says so
)

// ResourceStatus is how a resource agent stands, for its owner.
type ResourceStatus struct {
	Agent    protocol.AgentID `json:"agent"`
	At       time.Time        `json:"at"`
	Sales    Sales            `json:"sales"`
	Why      string           `json:"why,omitempty"` // nothing is sold
	Since    time.Time        `json:"since,omitzero"`
	Queue    QueueStatus      `json:"queue"`
	Slots    SlotStatus       `json:"slots"`
	Banks    []BankStatus     `json:"banks"`
	Forecast *ForecastStatus  `json:"forecast,omitempty"` // nil: nothing is learnt here
}

// QueueStatus is the batch system as it was last told.
type QueueStatus struct {
	Driver   string    `json:"driver,omitempty"`
	State    string    `json:"state"` // up, down or unknown
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since,omitzero"` // it is down
	Told     time.Time `json:"told,omitzero"`  // the last state
	Capacity int       `json:"capacity"`       // cores
	Busy     int       `json:"busy"`           // of them now
	Running  int       `json:"running"`        // jobs
	Queued   int       `json:"queued"`         // jobs that wait
}

// SlotStatus counts units by their state.
type SlotStatus struct {
	Held      int       `json:"held"`     // for a vote, or being reserved
	InDoubt   int       `json:"in_doubt"` // countersigned, the bank has not decided
	Sold      int       `json:"sold"`     // and not over
	Begun     int       `json:"begun"`    // of the sold ones
	Broken    int       `json:"broken"`   // lost for good within the last day
	Owed      int       `json:"owed"`     // refunds that a bank has not paid yet
	Unknown   int       `json:"unknown"`  // reservations with our mark that the journal does not have
	Next      time.Time `json:"next,omitzero"`
	LastEnds  time.Time `json:"last_ends,omitzero"` // of the sold ones: then a drained site is empty
	CoreHours float64   `json:"core_hours"`         // of the sold ones
}

// BankStatus is whether a bank was heard lately.
type BankStatus struct {
	Bank      protocol.AgentID `json:"bank"`
	Currency  string           `json:"currency"`
	Reachable *bool            `json:"reachable"` // nil: not heard yet, as without a daemon
	Heard     time.Time        `json:"heard,omitzero"`
	NotKept   bool             `json:"not_kept,omitempty"` // the bank says that it does not keep that currency
}

// ForecastStatus is what a site has learnt, and how what it told has held.
type ForecastStatus struct {
	Waits []WaitStatus `json:"waits"`
	Told  int64        `json:"told"` // bounds
	Held  int64        `json:"held"` // of them
	Rate  *float64     `json:"rate"` // nil: none was told yet

	Sharpen *SharpenStatus `json:"sharpen,omitempty"` // nil: it sells by the requested times alone
}

// SharpenStatus is how a site keeps what it promises, if it sells over jobs that are
// expected to end early.
type SharpenStatus struct {
	Selling         bool     `json:"selling"` // false: too many promises were broken
	BoundPerMille   int      `json:"bound_per_mille"`
	Ended           int      `json:"promises"` // the last whose slots have begun
	Broken          int      `json:"broken"`   // of them
	Rate            *float64 `json:"rate"`     // of Broken; nil: no slot has begun yet
	Sharpened       int      `json:"sharpened"`
	SharpenedBroken int      `json:"sharpened_broken"` // of them
}

// WaitStatus is one class of jobs by size.
type WaitStatus struct {
	Cores  string   `json:"cores"`
	Seen   int      `json:"seen"`          // waits that count
	Runs   int      `json:"runs"`          // run times that count
	Median *int64   `json:"median_s"`      // bound on the median wait; nil: too little seen
	Bound  *int64   `json:"bound_s"`       // on 0.95 of the waits
	Hour   *float64 `json:"within_hour"`   // P(start within an hour)
	Told   int64    `json:"told"`          // bounds
	Held   int64    `json:"held"`          // of them
	Rate   *float64 `json:"rate"`          // of Held
	Resets int      `json:"times_changed"` // the past was dropped, since waits had changed
}

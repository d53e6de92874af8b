package message

import (
	"time"

	"ramp/protocol"
)

// Sales is the state of a resource's sales.
type Sales string

// The states of sales. Sold slots are honoured in all of them.
const (
	SalesOpen    Sales = "open"
	SalesPaused  Sales = "paused"  // resume automatically
	SalesDrained Sales = "drained" // resume on the owner's command
)

// ResourceStatus is the state of a resource agent, for its owner.
type ResourceStatus struct {
	Agent      protocol.AgentID `json:"agent"`
	At         time.Time        `json:"at"`
	Sales      Sales            `json:"sales"`
	Why        string           `json:"why,omitempty"` // why nothing is sold
	Since      time.Time        `json:"since,omitzero"`
	Queue      QueueStatus      `json:"queue"`
	Slots      SlotStatus       `json:"slots"`
	Unbought   []Unbought       `json:"unbought,omitempty"` // buyers that held the most and did not buy it
	Banks      []BankStatus     `json:"banks"`
	Forecast   *ForecastStatus  `json:"forecast,omitempty"`   // nil: forecasting is off
	Federation string           `json:"federation,omitempty"` // why it has fewer cores than are configured
}

// QueueStatus is the last known state of the batch system.
type QueueStatus struct {
	Driver   string    `json:"driver,omitempty"`
	State    string    `json:"state"` // up, down or unknown
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since,omitzero"` // since when it is down
	Told     time.Time `json:"told,omitzero"`  // time of the last state
	Capacity int       `json:"capacity"`       // cores
	Busy     int       `json:"busy"`           // cores in use now
	Running  int       `json:"running"`        // jobs
	Queued   int       `json:"queued"`         // waiting jobs
}

// SlotStatus counts units by their state.
type SlotStatus struct {
	Held      int       `json:"held"`     // for a vote, or being reserved
	InDoubt   int       `json:"in_doubt"` // countersigned, the bank has not decided
	Sold      int       `json:"sold"`     // and not ended
	Begun     int       `json:"begun"`    // of the sold ones
	Broken    int       `json:"broken"`   // lost within the last day
	Owed      int       `json:"owed"`     // refunds that a bank has not paid yet
	Unknown   int       `json:"unknown"`  // own reservations that are missing in the journal
	Next      time.Time `json:"next,omitzero"`
	LastEnds  time.Time `json:"last_ends,omitzero"` // end of the last sold slot; then a drained site is empty
	CoreHours float64   `json:"core_hours"`         // of the sold ones
}

// Unbought is what a buyer has lately held and not bought: core-hours of slots, each held
// for a minute. Beyond the allowance the site holds only what a voucher covers.
type Unbought struct {
	Buyer     protocol.AgentID `json:"buyer"`
	CoreHours float64          `json:"core_hours"`
	Allowance float64          `json:"allowance_core_hours"`
}

// BankStatus is the connection to a bank.
type BankStatus struct {
	Bank      protocol.AgentID `json:"bank"`
	Currency  string           `json:"currency"`
	Reachable *bool            `json:"reachable"` // nil: unknown, for example without a daemon
	Heard     time.Time        `json:"heard,omitzero"`
	NotKept   bool             `json:"not_kept,omitempty"` // the bank does not keep this currency
}

// ForecastStatus is what a site has learnt about its queue, and how often its predictions held.
type ForecastStatus struct {
	Waits []WaitStatus `json:"waits"`
	Told  int64        `json:"told"` // predicted bounds
	Held  int64        `json:"held"` // bounds that held
	Rate  *float64     `json:"rate"` // Held / Told; nil before the first

	Overbook *OverbookStatus `json:"sharpen,omitempty"` // nil: it never overbooks
}

// OverbookStatus is how well a site keeps its promises, if it overbooks on the
// forecast: it sells over jobs that it expects to end early.
type OverbookStatus struct {
	Selling          bool     `json:"selling"` // false: too many promises were broken
	BoundPerMille    int      `json:"bound_per_mille"`
	Ended            int      `json:"promises"`         // recent promises whose slots have begun
	Broken           int      `json:"broken"`           // of Ended
	Rate             *float64 `json:"rate"`             // Broken / Ended; nil before the first
	Overbooked       int      `json:"sharpened"`        // of Ended: overbooked
	OverbookedBroken int      `json:"sharpened_broken"` // of Overbooked
}

// WaitStatus is one class of jobs by size.
type WaitStatus struct {
	Cores  string   `json:"cores"`
	Seen   int      `json:"seen"`          // observed waits
	Runs   int      `json:"runs"`          // observed run times
	Median *int64   `json:"median_s"`      // bound on the median wait; nil: too few observations
	Bound  *int64   `json:"bound_s"`       // bound on the 0.95 quantile of the waits
	Hour   *float64 `json:"within_hour"`   // P(start within an hour)
	Told   int64    `json:"told"`          // predicted bounds
	Held   int64    `json:"held"`          // bounds that held
	Rate   *float64 `json:"rate"`          // Held / Told
	Resets int      `json:"times_changed"` // how often waits changed and the history was dropped
}

// CalendarBin is a piece of a site's calendar, in cores. They sum to Capacity.
type CalendarBin struct {
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Free     int       `json:"free"` // that may be sold for all of it
	Held     int       `json:"held"`
	Sold     int       `json:"sold"`
	Other    int       `json:"other"` // local jobs, as the batch system foresees them
	Capacity int       `json:"capacity"`
}

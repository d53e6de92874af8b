package protocol

import "time"

// Code is why an agent refuses. The set is closed, so that refusals can be
// summed over all sellers.
type Code string

// The codes.
const (
	// The machine does not meet a static term of the request.
	CodeOS           Code = "os"
	CodeOSVersion    Code = "os-version"
	CodeArchitecture Code = "architecture"
	CodeCPUSpeed     Code = "cpu-speed"
	CodeRAM          Code = "ram"
	CodeDisk         Code = "disk"
	CodeBandwidth    Code = "bandwidth"
	CodeSize         Code = "size" // the whole machine has fewer cores or nodes
	// The seller does not deal on these terms.
	CodeNoBank  Code = "no-bank" // no bank and currency in common
	CodeMode    Code = "mode"    // no settlement mode in common
	CodeProgram Code = "program" // what is to be launched does not run there
	// The machine is busy, or the price too low.
	CodeBusy   Code = "busy"   // too few free cores over the slot
	CodePrice  Code = "price"  // the ceiling is below the seller's price
	CodeStands Code = "stands" // the seller's last bid holds
	CodeWindow Code = "window" // the window is over, or too far ahead
	// The seller will not promise more.
	CodeHoldLimit   Code = "hold-limit"
	CodeVoucher     Code = "voucher"
	CodeLimit       Code = "limit" // a named bound was reached
	CodeUnavailable Code = "unavailable"
	CodeDraining    Code = "draining"
	// A message came too late, or names something that is not so.
	CodeExpired   Code = "expired"
	CodeUnknown   Code = "unknown"
	CodeMismatch  Code = "mismatch" // terms differ from what was agreed
	CodeMalformed Code = "malformed"
	CodeForbidden Code = "forbidden" // the sender may not ask this
	// The bank refuses.
	CodeSignature Code = "signature"
	CodeAccount   Code = "account"
	CodeFunds     Code = "funds"
	CodeFrozen    Code = "frozen"    // the operator has frozen the account
	CodeSettleBy  Code = "settle-by" // settle-by passed before every copy was there
	CodeAbandoned Code = "abandoned" // a party asked for void
	CodeOverflow  Code = "overflow"
	// Nobody answered.
	CodeSilent Code = "silent"
	// The best set, or an offer, breaks a limit of the buyer's own.
	CodeCeiling  Code = "ceiling"
	CodeLate     Code = "late" // it would start later than the buyer waits; sellers do not hear of it
	CodeApproval Code = "approval"
)

// Reason is a refusal of one unit (or of all, Unit -1) with its figures.
type Reason struct {
	Code  Code      `json:"code"`
	Unit  int       `json:"unit"`           // index in the document; -1: all of it
	Term  string    `json:"term,omitempty"` // the RFQL term that failed
	Want  string    `json:"want,omitempty"` // what was asked
	Have  string    `json:"have,omitempty"` // what there is
	Asks  Credits   `json:"asks,omitempty"` // price per core-hour at which it would bid
	Start time.Time `json:"start,omitzero"` // earliest start that it could offer
	Free  int       `json:"free,omitempty"` // most cores free over a slot in the window
	Note  string    `json:"note,omitempty"` // words for people
	Hints []Hint    `json:"hints,omitempty"`
}

// Hint is an offer that a seller would have made for the unit it refuses, had the
// request asked for no more: these cores, for the wall time from Start on, at
// Price. It binds nobody, and tells nothing that such an offer would not.
type Hint struct {
	Start time.Time `json:"start"`
	Cores int       `json:"cores"`
	Price Credits   `json:"price_core_hour"` // what it would ask; above the request's ceiling, the least ceiling that would do
	// Tariff is the contract that would be accepted, of a request that is to be
	// metered: a counter-offer (001). P is that of the request, not of one bid.
	Tariff Tariff `json:"contract,omitzero"`
}

// AllUnits is the Unit of a Reason that holds for the whole request.
const AllUnits = -1

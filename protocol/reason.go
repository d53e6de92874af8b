package protocol

import (
	"strings"
	"time"
)

// Code is why an agent refuses. The set is closed, so that refusals can be
// counted over all sellers.
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
	// The seller does not accept these terms.
	CodeNoBank  Code = "no-bank" // no bank and currency in common
	CodeMode    Code = "mode"    // no settlement mode in common
	CodeProgram Code = "program" // the site does not run the program
	// The machine is busy, or the price is too low.
	CodeBusy   Code = "busy"   // too few free cores over the slot
	CodePrice  Code = "price"  // the ceiling is below the seller's price
	CodeStands Code = "stands" // the seller's last bid remains valid
	CodeWindow Code = "window" // the window is over, or too far ahead
	// The seller will not promise more.
	CodeHoldLimit   Code = "hold-limit"
	CodeVoucher     Code = "voucher"
	CodeLimit       Code = "limit" // a named bound was reached
	CodeUnavailable Code = "unavailable"
	CodeDraining    Code = "draining"
	// A message came too late, or is wrong.
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
	CodeSettleBy  Code = "settle-by" // a copy was missing at the settle-by time
	CodeAbandoned Code = "abandoned" // a party asked to void it
	CodeOverflow  Code = "overflow"
	// Nobody answered.
	CodeSilent Code = "silent"
	// The best set, or an offer, breaks the buyer's own limit.
	CodeCeiling  Code = "ceiling"
	CodeLate     Code = "late" // it would start later than the buyer waits; sellers never see this code
	CodeApproval Code = "approval"
	CodeClock    Code = "clock" // the bank's clock is ahead; nobody sends this code
)

// Reason is a refusal of one unit, or of all of them, with its figures.
type Reason struct {
	Code  Code      `json:"code"`
	Unit  int       `json:"unit"`           // index in the document, or AllUnits
	Term  string    `json:"term,omitempty"` // the RFQL term that failed
	Want  string    `json:"want,omitempty"` // as requested
	Have  string    `json:"have,omitempty"` // as available
	Asks  Credits   `json:"asks,omitempty"` // price per core-hour at which it would bid
	Start time.Time `json:"start,omitzero"` // earliest start that it could offer
	Free  int       `json:"free,omitempty"` // most cores free over a slot in the window
	Note  string    `json:"note,omitempty"` // for people
	Hints []Hint    `json:"hints,omitempty"`
}

// Words are the code and, if there is one, the note.
func (r Reason) Words() string { return strings.TrimSuffix(string(r.Code)+": "+r.Note, ": ") }

// Hint is the offer that the seller would have made to a smaller request: these cores, for the wall
// time from Start on, at Price. It binds nobody, and reveals no more than such an offer would.
type Hint struct {
	Start time.Time `json:"start"`
	Cores int       `json:"cores"`
	Price Credits   `json:"price_core_hour"` // its price; if above the request's ceiling, the lowest sufficient ceiling
	// Tariff is the contract that the seller would accept for a metered request: a
	// counter-offer (001). P is the request's, not that of a bid.
	Tariff Tariff `json:"contract,omitzero"`
}

// AllUnits is the Unit of a Reason for the whole request.
const AllUnits = -1

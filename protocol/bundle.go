package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode is when a settled bundle is paid. The values are signed.
type Mode string

// The settlement modes.
const (
	ModeOnReservation Mode = "on-reservation" // 002: paid when the reservation is confirmed
	ModeOnCompletion  Mode = "on-completion"  // 000: held at the reservation, paid once the cores were delivered, freed if the site failed
	ModeMetered       Mode = "metered"        // 001: a ceiling is held; the amount due is paid and the rest freed
)

// Known reports whether m is one of the modes.
func (m Mode) Known() bool {
	return m == ModeOnReservation || m == ModeOnCompletion || m == ModeMetered
}

// ModeWords lists modes for people.
func ModeWords(modes []Mode) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(modes), "[]"), " ", ", ")
}

// Terms are a bank and a currency that an agent accepts.
type Terms struct {
	Bank     AgentID `json:"bank"`
	Currency string  `json:"currency"`
}

// Bundle is the contract: everything that a user buys in one conversation, from
// one or more sellers, all or nothing. Signatures cover its canonical form.
type Bundle struct {
	Version      int          `json:"version"` // BundleVersion
	Conversation string       `json:"conversation"`
	User         AgentID      `json:"user"`
	Bank         AgentID      `json:"bank"`
	Currency     string       `json:"currency"`
	Mode         Mode         `json:"mode"`
	RFQ          string       `json:"rfq_sha256"` // hex SHA-256 of the document as sent
	Units        []BundleUnit `json:"units"`      // 1..MaxUnits, in order of Unit
	Total        Credits      `json:"total"`      // the sum of the units' costs
	Nonce        string       `json:"nonce"`
	SettleBy     time.Time    `json:"settle_by"`
}

// BundleVersion is the version of Bundle that this program writes and reads.
const BundleVersion = 1

// BundleUnit is one reservation of a bundle.
type BundleUnit struct {
	Unit        int     `json:"unit"`
	Seller      AgentID `json:"seller"`
	Reservation string  `json:"reservation"`
	Slot        Slot    `json:"slot"`
	Price       Credits `json:"price_core_hour"`
	Cost        Credits `json:"cost"`            // on-completion: paid if delivered; metered: the ceiling
	Tariff      Tariff  `json:"tariff,omitzero"` // only in metered bundles
}

// ContractID is the hex SHA-256 of a bundle's canonical octets, never of a
// signature, which can be re-encoded.
type ContractID string

// Outcome is a bank's decision about a bundle. The values are signed.
type Outcome string

// The outcomes. Only settled and void are decisions.
const (
	OutcomeUnknown   Outcome = "unknown"
	OutcomeGathering Outcome = "gathering"
	OutcomeSettled   Outcome = "settled"
	OutcomeVoid      Outcome = "void"
)

// Receipt is a bank's signed answer about a contract.
type Receipt struct {
	Version  int        `json:"version"`
	Bank     AgentID    `json:"bank"`
	Contract ContractID `json:"contract"`
	Outcome  Outcome    `json:"outcome"` // settled or void; Refunds lists refunded units
	Reason   Code       `json:"reason,omitempty"`
	Entry    uint64     `json:"entry"` // number of the deciding ledger record; zero: void by its settle-by alone
	Time     time.Time  `json:"time"`  // when it was decided
	User     AgentID    `json:"user"`
	Total    Credits    `json:"total"` // amount moved; zero when void
	Currency string     `json:"currency"`
	Refunds  []Refund   `json:"refunds,omitempty"`
	Mode     Mode       `json:"mode,omitempty"` // empty: on-reservation. In the other modes Total was held, and Ends lists payments
	Ends     []UnitEnd  `json:"ends,omitempty"`
}

// UnitEnd is a unit whose hold has ended, in the modes that pay after the fact.
// A cancelled unit is among the refunds instead.
type UnitEnd struct {
	Unit  int       `json:"unit"`
	Paid  Credits   `json:"paid"` // the rest of the unit's cost is free again
	How   End       `json:"how"`
	Entry uint64    `json:"entry"`
	Time  time.Time `json:"time"`
}

// End is how the hold of a unit ended. The values are signed.
type End string

// The ends.
const (
	EndSucceeded  End = "succeeded"  // the seller reports success
	EndFailed     End = "failed"     // the seller reports failure: its own, and nothing is paid, or the program's
	EndAgreed     End = "agreed"     // the user countersigned the usage record
	EndSilent     End = "silent"     // the user did not answer in time
	EndArbitrated End = "arbitrated" // the bank's operator decided a dispute
	EndExpired    End = "expired"    // the seller did not report in time: nothing is paid
)

// Known reports whether e is one of the ends.
func (e End) Known() bool {
	return slices.Contains([]End{EndSucceeded, EndFailed, EndAgreed, EndSilent, EndArbitrated, EndExpired}, e)
}

// Refund is a unit that was cancelled after settlement.
type Refund struct {
	Unit   int       `json:"unit"`
	Amount Credits   `json:"amount"`
	Entry  uint64    `json:"entry"`
	Time   time.Time `json:"time"`
}

package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// Acceptance asks for a seller's vote on one of its offers (accept-proposal).
// The whole offer is repeated, so that both sides mean the same.
type Acceptance struct {
	Offer     protocol.Offer
	HoldUntil time.Time // until when the seller is asked to hold it
}

// Reservation is one slot that a seller holds for a unit.
type Reservation struct {
	Unit int
	ID   string // unique for ever among the seller's reservations
	Slot protocol.Slot
	Note string // how it is held, when not by a true reservation
}

// Vote is a seller's yes (agree): the slots are held until HoldUntil.
type Vote struct {
	Offer        string // the offer's ID
	Reservations []Reservation
	HoldUntil    time.Time
}

// Confirmation carries the bundle with the user's signature (confirm, from the
// user to every seller).
type Confirmation struct {
	Bundle contract.Verified
}

// Countersigned says that the seller signed too (confirm, from the seller).
type Countersigned struct {
	Sale contract.Sale
}

// Cancellation frees what is only held (cancel). It does nothing to a
// reservation whose contract is countersigned.
type Cancellation struct {
	Reservations []string
}

// Settlement hands the bank one seller's copy (request).
type Settlement struct {
	Sale contract.Sale
}

// Annulment asks the bank to void a bundle that is not settled (request, from
// the user or a named seller).
type Annulment struct {
	Bundle contract.Verified
}

// OutcomeQuery asks a bank what it decided (query-ref).
type OutcomeQuery struct {
	Contract protocol.ContractID
}

// Decision is what a bank says of a contract (agree, refuse, inform). Receipt
// is set iff Outcome is settled or void; an Outcome of unknown or gathering
// decides nothing.
type Decision struct {
	Contract protocol.ContractID
	Outcome  protocol.Outcome
	Reason   protocol.Code
	Receipt  *contract.VerifiedReceipt
}

// UnitCancellation asks a seller to take back one settled unit (request,
// signed by the user).
type UnitCancellation struct {
	Signed contract.VerifiedNote[contract.Cancel]
}

// RefundRequest asks the bank to move a unit's cost, less the fee, back
// (request, signed by the seller). It carries the contract: a bank keeps
// outcomes, not bundles.
type RefundRequest struct {
	Bundle contract.Verified
	Signed contract.VerifiedNote[contract.Refund]
}

// Kind is the word on the wire.
func (Acceptance) Kind() string       { return "acceptance" }
func (Vote) Kind() string             { return "vote" }
func (Confirmation) Kind() string     { return "confirmation" }
func (Countersigned) Kind() string    { return "countersigned" }
func (Cancellation) Kind() string     { return "cancellation" }
func (Settlement) Kind() string       { return "settlement" }
func (Annulment) Kind() string        { return "annulment" }
func (OutcomeQuery) Kind() string     { return "outcome-query" }
func (Decision) Kind() string         { return "decision" }
func (UnitCancellation) Kind() string { return "unit-cancellation" }
func (RefundRequest) Kind() string    { return "refund-request" }

// SignedReceipt is a bank's receipt. A bank leaves DER empty and the receipt is
// signed on the way out; one that arrived was verified, and has it.
type SignedReceipt = contract.VerifiedReceipt

package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// Acceptance asks for a seller's vote on one of its offers (accept-proposal). It
// repeats the offer, so that both sides mean the same one.
type Acceptance struct {
	Offer     protocol.Offer
	HoldUntil time.Time // requested end of the hold
	// Voucher is the hold of the buyer's bank for this conversation; nil: none.
	Voucher *contract.VerifiedNote[contract.Voucher]
}

// Reservation is one slot that a seller holds for a unit.
type Reservation struct {
	Unit int
	ID   string // unique among all reservations of the seller, never reused
	Slot protocol.Slot
	Note string // how the slot is held, unless by a real reservation
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

// Countersigned carries the seller's signature too (confirm, from the seller).
type Countersigned struct {
	Sale contract.Sale
}

// Cancellation frees held reservations (cancel). It has no effect on a reservation
// whose contract is countersigned.
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

// OutcomeQuery asks a bank for its decision (query-ref).
type OutcomeQuery struct {
	Contract protocol.ContractID
}

// Decision is a bank's answer about a contract (agree, refuse, inform). Receipt is set if and only
// if Outcome is settled or void; unknown and gathering are not decisions.
type Decision struct {
	Contract protocol.ContractID
	Outcome  protocol.Outcome
	Reason   protocol.Code
	Receipt  *contract.VerifiedReceipt
}

// UnitCancellation asks a seller to take back one settled unit (request, signed by the user).
type UnitCancellation struct {
	Signed contract.VerifiedNote[contract.Cancel]
}

// RefundRequest asks the bank to return a unit's cost, less the fee (request, signed
// by the seller). It carries the contract, since banks keep outcomes, not bundles.
type RefundRequest struct {
	Bundle contract.Verified
	Signed contract.VerifiedNote[contract.Refund]
}

// Kind is the name on the wire.
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

// SignedReceipt is a bank's receipt. A bank leaves DER empty and codec.Sign signs
// the receipt; a received one is verified and has its DER.
type SignedReceipt = contract.VerifiedReceipt

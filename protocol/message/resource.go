package message

import (
	"time"

	"ramp/protocol"
)

// QuoteLine records why a resource offered or refused one unit in one round, with
// all figures. Exactly one of Offer and Reason is set.
type QuoteLine struct {
	At           time.Time        `json:"at"`
	Buyer        protocol.AgentID `json:"buyer,omitempty"`
	Conversation string           `json:"conversation,omitempty"`
	Round        int              `json:"round"`
	Unit         int              `json:"unit"`
	Cores        int              `json:"cores"`
	Slot         protocol.Slot    `json:"slot,omitzero"`    // found now, or offered before
	Standing     protocol.Credits `json:"standing"`         // price per core-hour to beat
	Busy         int              `json:"busy"`             // cores allocated at the slot's start
	Capacity     int              `json:"capacity"`         // cores in total
	Offer        *protocol.Offer  `json:"offer,omitempty"`  // the offer made
	Reason       *protocol.Reason `json:"reason,omitempty"` // or why none was made
}

// Refuse replaces the offer of the line by a reason.
func (l QuoteLine) Refuse(r protocol.Reason) QuoteLine {
	r.Unit = l.Unit
	l.Reason, l.Offer = &r, nil
	return l
}

// ReservationLine is one reservation in the resource's journal.
type ReservationLine struct {
	ID           string              `json:"id"`
	State        string              `json:"state"`
	User         protocol.AgentID    `json:"user"`
	Conversation string              `json:"conversation"`
	Unit         int                 `json:"unit"`
	Slot         protocol.Slot       `json:"slot"`
	Price        protocol.Credits    `json:"price_core_hour"`
	Cost         protocol.Credits    `json:"cost"`
	HoldUntil    time.Time           `json:"hold_until"`
	Contract     protocol.ContractID `json:"contract,omitempty"`
	Bank         protocol.AgentID    `json:"bank,omitempty"`
	Why          string              `json:"why,omitempty"` // why it ended

	Mode  protocol.Mode    `json:"mode,omitempty"`  // of the contract; empty: on-reservation
	Due   protocol.Credits `json:"due,omitempty"`   // as reported after the job stopped
	Usage *protocol.Usage  `json:"usage,omitempty"` // likewise
	// Measured is the source of the usage, if no program was launched.
	Measured protocol.Measured `json:"measured,omitempty"`
	// Guarantee compares the usage with the site's promise; nil without a promise.
	Guarantee *protocol.Guarantee `json:"guarantee,omitempty"`

	Paid protocol.End `json:"ended,omitempty"` // how the bank ended the unit's hold
}

// QueueQuery asks for the state of the batch system (local, query-ref); the answer is QueueChanged.
type QueueQuery struct{}

// Kind names the body; local bodies are never on the wire.
func (QueueQuery) Kind() string { return "local-queue-query" }

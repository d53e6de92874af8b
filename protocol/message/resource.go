package message

import (
	"time"

	"ramp/protocol"
)

// QuoteLine is why a resource offered or refused one unit in one round: every
// figure that went into it. Exactly one of Offer and Reason is set.
type QuoteLine struct {
	At           time.Time        `json:"at"`
	Buyer        protocol.AgentID `json:"buyer,omitempty"`
	Conversation string           `json:"conversation,omitempty"`
	Round        int              `json:"round"`
	Unit         int              `json:"unit"`
	Cores        int              `json:"cores"`
	Slot         protocol.Slot    `json:"slot,omitzero"`             // found, or offered before
	Standing     protocol.Credits `json:"standing"`                  // price per core-hour to beat
	Busy         int              `json:"busy"`                      // cores allocated at the slot's start
	Capacity     int              `json:"capacity"`                  // of so many
	Price        protocol.Credits `json:"price_core_hour,omitempty"` // asked
	Offer        *protocol.Offer  `json:"offer,omitempty"`           // made
	Reason       *protocol.Reason `json:"reason,omitempty"`          // or why not
}

// Refuse is the line with a reason in place of an offer.
func (l QuoteLine) Refuse(r protocol.Reason) QuoteLine {
	r.Unit = l.Unit
	l.Reason, l.Offer = &r, nil
	return l
}

// OffersQuery asks a resource for its last offers and refusals (local,
// query-ref), oldest first. Conversation empty means all.
type OffersQuery struct {
	Conversation string `json:"conversation,omitempty"`
	Limit        int    `json:"limit,omitempty"` // at most so many of the newest; 0: all that are kept
}

// Quotes answers OffersQuery and CheckQuery (inform).
type Quotes struct {
	Lines []QuoteLine `json:"lines"`
}

// CheckQuery asks a resource what it would offer for a document, round by round,
// if another seller always met its last price (local, query-ref). Nothing is
// promised.
type CheckQuery struct {
	Document []byte `json:"document"`
	Rounds   int    `json:"rounds"` // 1..MaxCheckRounds
}

// MaxCheckRounds bounds the rounds of a CheckQuery.
const MaxCheckRounds = 100

// ReservationsQuery asks a resource for its reservations (local, query-ref).
type ReservationsQuery struct{}

// ReservationLine is one reservation as the resource's journal has it.
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
	Why          string              `json:"why,omitempty"` // why it ended, or what is awaited
}

// ReservationList answers ReservationsQuery (inform), in order of start.
type ReservationList struct {
	Reservations []ReservationLine `json:"reservations"`
}

// Drain tells a resource to make no more offers; what was promised is kept
// (local, request). Answered by agree with Drained.
type Drain struct {
	Off bool `json:"off,omitempty"` // offer again
}

// Drained answers Drain: how many reservations are promised but not yet over.
type Drained struct {
	Promised int `json:"promised"`
}

// Kind names the body; local bodies are never on the wire.
func (OffersQuery) Kind() string       { return "local-offers-query" }
func (Quotes) Kind() string            { return "local-quotes" }
func (CheckQuery) Kind() string        { return "local-check-query" }
func (ReservationsQuery) Kind() string { return "local-reservations-query" }
func (ReservationList) Kind() string   { return "local-reservation-list" }
func (Drain) Kind() string             { return "local-drain" }
func (Drained) Kind() string           { return "local-drained" }

package message

import (
	"time"

	"ramp/protocol"
)

// Presence tells the market who is there (gossip, inform). It counts from
// receipt for TTL; one with a counter not above the last is ignored.
type Presence struct {
	Agent      protocol.Kind
	Properties protocol.Properties // of a resource
	Start, Min protocol.Credits    // of a resource: its price band per core-hour
	Terms      []protocol.Terms    // banks and currencies it deals in; of a bank: its own
	Modes      []protocol.Mode
	After      []protocol.Terms // of a bank: those of Terms that pay nothing at the reservation
	Recovering time.Time        // of a bank that was restored: what it decided later may be missing; zero: it does not recover
	TTL        time.Duration    // zero: it leaves
	Counter    uint64
	Addresses  []string // multiaddresses, filled in by the mesh
}

// Ceiling is the price per core-hour that an offer for a unit must beat
// (round 1: must not exceed).
type Ceiling struct {
	Unit  int
	Price protocol.Credits
}

// BundleCeiling is the best cost so far of an offer for several units together.
type BundleCeiling struct {
	Units []int
	Cost  protocol.Credits
}

// CallForProposals opens a round. Round 1 carries the document; later rounds
// only what changed: the seller remembers the document by its conversation.
type CallForProposals struct {
	Round     int
	Document  []byte // round 1: the RFQL document as XML
	Ceilings  []Ceiling
	Bundles   []BundleCeiling
	Objective protocol.Objective
	Terms     []protocol.Terms // where the user can pay
	Modes     []protocol.Mode
	Best      bool // the best-offer round: ceilings and deadline are lifted
	// Launch is what is to run in what is bought; nil: nothing. It comes with the
	// document.
	Launch *Intent
	// Budget is about how many answers a gossiped call wants, of about Among
	// sellers who could make an offer; zero: one from everybody. A seller that
	// auction.Chosen leaves out, or that has nothing to offer, keeps silent.
	Budget, Among int
}

// Proposal is a seller's bids in a round, with why it does not bid on the rest.
type Proposal struct {
	Round    int
	Offers   []protocol.Offer
	Capacity []protocol.Span // cores it can give jointly; empty: all its offers together
	Refusals []protocol.Reason
}

// Refusal is why not: the body of refuse, reject-proposal, failure and
// not-understood.
type Refusal struct {
	Round   int // of the auction; zero elsewhere
	Reasons []protocol.Reason
}

// Refused makes a Refusal of one reason.
func Refused(code protocol.Code, note string) Refusal {
	return Refusal{Reasons: []protocol.Reason{{Code: code, Unit: protocol.AllUnits, Note: note}}}
}

// Kind is the word on the wire.
func (Presence) Kind() string         { return "presence" }
func (CallForProposals) Kind() string { return "cfp" }
func (Proposal) Kind() string         { return "proposal" }
func (Refusal) Kind() string          { return "refusal" }

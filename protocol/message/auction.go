package message

import (
	"time"

	"ramp/protocol"
)

// Presence announces an agent to the market (gossip, inform). It is valid for TTL
// from receipt; receivers ignore a counter that is not above the last.
type Presence struct {
	Agent      protocol.Kind
	Properties protocol.Properties // of a resource
	Start, Min protocol.Credits    // of a resource: its price band per core-hour
	Terms      []protocol.Terms    // banks and currencies that it accepts; of a bank: its own
	Modes      []protocol.Mode
	After      []protocol.Terms // of a bank: the Terms under which nothing is paid at the reservation
	Recovering time.Time        // of a restored bank: later decisions may be missing; zero: the bank is not recovering
	TTL        time.Duration    // zero: the agent leaves
	Counter    uint64
	Addresses  []string  // multiaddresses, filled in by the mesh
	Issued     time.Time // filled in by the mesh; zero: an agent of a version without it
	// Index is 1 and the number of sellers in the market, of an agent that keeps an
	// index; 0: it keeps none.
	Index int
	// Issuer names the authority of the agent's certificate. The transport fills it in.
	Issuer string
	// Federation is the SHA-256 of the rules file of the seller's federation (003), in hex;
	// empty: it is in none.
	Federation string
}

// Ceiling is the price per core-hour that an offer for a unit must beat (round 1: must not exceed).
type Ceiling struct {
	Unit  int
	Price protocol.Credits
	Tied  bool // the receiver's own offer is at this price, but another seller's leads
}

// BundleCeiling is the lowest cost so far of an offer for several units together.
type BundleCeiling struct {
	Units []int
	Cost  protocol.Credits
}

// CallForProposals opens a round. Round 1 carries the document, later rounds only
// changes: the seller remembers the document of the conversation.
type CallForProposals struct {
	Round     int
	Document  []byte // round 1: the RFQL document as XML
	Ceilings  []Ceiling
	Bundles   []BundleCeiling
	Objective protocol.Objective
	Terms     []protocol.Terms // where the user can pay
	Modes     []protocol.Mode
	Best      bool // the best-offer round: ceilings and deadline are lifted
	// Start is when all units are to begin that must begin together, or the earliest time
	// for which it is worth asking; zero: any.
	Start time.Time
	// Launch is the program to run in the units, sent with the document; nil: none.
	Launch *Intent
	// Budget is the approximate number of answers that a gossiped call wants, of about
	// Among sellers that could make an offer; zero: all should answer. A seller that
	// auction.Chosen leaves out, or that has nothing to offer, does not answer.
	Budget, Among int
}

// Proposal is a seller's bids in a round, with reasons for the units without a bid.
type Proposal struct {
	Round    int
	Offers   []protocol.Offer
	Capacity []protocol.Span // cores available jointly; empty: enough for all its offers together
	Refusals []protocol.Reason
}

// Refusal gives reasons. It is the body of refuse, reject-proposal, failure and not-understood.
type Refusal struct {
	Round   int // of the auction; zero elsewhere
	Reasons []protocol.Reason
}

// Refused makes a Refusal of one reason.
func Refused(code protocol.Code, note string) Refusal {
	return Refusal{Reasons: []protocol.Reason{{Code: code, Unit: protocol.AllUnits, Note: note}}}
}

// Kind is the name on the wire.
func (Presence) Kind() string         { return "presence" }
func (CallForProposals) Kind() string { return "cfp" }
func (Proposal) Kind() string         { return "proposal" }
func (Refusal) Kind() string          { return "refusal" }

package auction

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// BuyerState is the state of a Buyer. The numbers are shown, never stored: an
// auction ends with its process.
type BuyerState int

// The states of a Buyer.
const (
	Calling   BuyerState = 1
	BestOffer BuyerState = 2 // the extra round with ceilings lifted
	Awarded   BuyerState = 3 // Result has a set that satisfies the request
	Closest   BuyerState = 4 // Result has the closest set, for approval
	Failed    BuyerState = 5 // nobody can meet every unit
)

func (s BuyerState) String() string {
	return [...]string{"none", "calling", "best-offer", "awarded", "closest", "failed"}[s]
}

// BuyerConfig is one request for quotation and the rules of its auction.
type BuyerConfig struct {
	Self         protocol.AgentID
	Conversation string
	Document     []byte // as sent in round 1
	Wants        []Want // one per unit of the document
	Sellers      []protocol.AgentID
	Rounds       int // 0: until nobody improves, at most protocol.MostRounds
	RoundLimit   time.Duration
	NoEarlyClose bool // rounds of fixed length, as in the source
	Objective    protocol.Objective
	SameStart    bool             // all units begin at the same instant
	MaxCost      protocol.Credits // of the whole set; 0: none
	Terms        []protocol.Terms
	Modes        []protocol.Mode
	Launch       *message.Intent // the program to run; nil: none yet
	CallAtMost   int             // sellers over direct streams, more by gossip; 0: protocol.MaxGossipless
	// Budget is how many sellers a round asks if there are more than CallAtMost,
	// chosen by their Prospects; 0: everybody.
	Budget    int
	Prospects []Prospect // one for each of Sellers, if there is a Budget
	// Shortlist means that Sellers are a choice out of many more. Nobody is called by gossip.
	Shortlist bool
	// Last reports whether a seller is bought from only if there is no other set, because
	// it keeps silent when it should hold what it offered. nil: none is.
	Last func(protocol.AgentID) bool
}

func (c *BuyerConfig) last(id protocol.AgentID) bool { return c.Last != nil && c.Last(id) }

// Validate names the first invalid field and the allowed values.
func (c BuyerConfig) Validate() error {
	switch {
	case len(c.Wants) < 1 || len(c.Wants) > protocol.MaxUnits:
		return fmt.Errorf("auction: %d units, want 1..%d", len(c.Wants), protocol.MaxUnits)
	case c.Rounds < 0 || c.Rounds > protocol.MaxRounds:
		return fmt.Errorf("auction: %d rounds, want 1..%d, or 0 until nobody improves", c.Rounds, protocol.MaxRounds)
	case c.RoundLimit < MinRoundLimit || c.RoundLimit > MaxRoundLimit:
		return fmt.Errorf("auction: round limit %s, want %s..%s", c.RoundLimit, MinRoundLimit, MaxRoundLimit)
	case c.Budget < 0 || c.Budget > MaxBudget:
		return fmt.Errorf("auction: budget of %d answers, want 0..%d", c.Budget, MaxBudget)
	case c.Budget > 0 && len(c.Prospects) != len(c.Sellers):
		return fmt.Errorf("auction: %d prospects of %d sellers, want one each", len(c.Prospects), len(c.Sellers))
	}
	return nil
}

// Bounds of an auction.
const (
	MinRoundLimit = 10 * time.Millisecond
	MaxRoundLimit = time.Hour
	MaxBudget     = 4096
	maxStanding   = 1 << 16            // offers that a buyer remembers in one auction; it ignores further ones
	maxOfSeller   = protocol.MaxOffers // offers of one seller, so that it cannot push out the others
	maxBundles    = 128                // ceilings of bundles; further bundles get no ceiling
)

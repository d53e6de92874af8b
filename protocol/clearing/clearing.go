// Package clearing decides who wins: the best set of offers that covers every
// unit of a request exactly once (winner determination).
//
// Solve is a function of the bids alone. It never reads a clock or a random
// source, uses no floating point, and does not care in which order bids are
// given: every observer of the same bids names the same set.
//
// A set may be bought if it covers every unit exactly once, takes at most one
// offer of each seller's exclusive group, and asks no seller for more cores at
// any instant than it said it can give jointly. Offers of a seller that share no
// group add up; a group makes them exclusive; an offer of several items is
// bought as a whole.
//
// Of those sets the best is the first by
//
//	fewest violated terms, least relative excess   (of bids that carry them)
//	cost, then finish    (objectives cost and cost-time)
//	finish, then cost    (objective time)
//	unit by unit in order: the bid that ends first, arrival, agent ID, offer ID
//
// where finish is the latest end of any item. Ties between sets are decided unit
// by unit because the source ranks single bids only: by price, deadline, arrival.
//
// The search is exact: components, dominance, a Lagrangian bound whose seller
// problems are solved with groups and capacity kept, reduced-cost fixing, and
// branching on the unit with the fewest live offers. It is also any-time: at its
// limit it returns the best set found, what is proved about better ones, and
// Exact false.
package clearing

import (
	"errors"
	"fmt"
	"time"

	"ramp/protocol"
)

// Bounds of a problem.
const (
	// MaxBids is the most bids of a problem, fixed ones not counted.
	MaxBids = 1 << 17
	// MaxOfferCost is the most that one offer may cost (about 10⁹ credits), so
	// that no sum over protocol.MaxUnits offers can overflow.
	MaxOfferCost protocol.Credits = 1 << 50
	// MaxViolations and MaxExcess bound what one bid may carry.
	MaxViolations = 1 << 12
	MaxExcess     = 1 << 40 // per mille
	// DefaultLimit is about a second of search on one core of 2.5 GHz.
	DefaultLimit = 100_000_000
)

// ErrProblem is returned for a problem that cannot be asked: units, objective or
// fixed bids that make no sense. A bad bid among Problem.Bids is no error: it is
// left out, so that no seller can stop an auction by what it offers.
var ErrProblem = errors.New("clearing: bad problem")

// Bid is an offer and whose it is.
type Bid struct {
	Seller  protocol.AgentID
	Arrival int // place in the order of arrival; ties go to the smaller
	Offer   protocol.Offer

	// For the closest set, when nothing satisfies the request (protocol, auction
	// step 5). Zero for an offer that meets every term.
	Violations int // terms that the offer violates, summed over its items
	Excess     int // by how much, per mille of what was asked, summed over its items
}

// Problem is a request and the bids for it.
type Problem struct {
	Units     int                                  // units to cover, numbered from 0; 1..protocol.MaxUnits
	Bids      []Bid                                // in any order
	Capacity  map[protocol.AgentID][]protocol.Span // joint cores of a seller; where spans overlap the least holds, and outside them there is no limit
	Fixed     []Bid                                // already agreed: part of the set; each covers its units and takes its seller's group and cores
	Objective protocol.Objective
	MaxCost   protocol.Credits // of the set, fixed bids included; 0: no ceiling
	MaxFinish time.Time        // of the set; zero: no ceiling
	Limit     int              // steps of search, about 10 ns each; 0: DefaultLimit
}

// Status says what Solve found. The numbers may be stored.
type Status int

// The statuses. Only Covered comes with a set.
const (
	Covered     Status = 1 // Chosen covers every unit
	Unoffered   Status = 2 // Units have no offer that could be bought even alone
	Conflicting Status = 3 // Units have offers, but no set of offers covers all of these together
	TooDear     Status = 4 // sets exist, but none within MaxCost; CostBound says what the cheapest costs at least
	Undecided   Status = 5 // the limit came before any set was found
)

func (s Status) String() string {
	switch s {
	case Covered:
		return "covered"
	case Unoffered:
		return "unoffered"
	case Conflicting:
		return "conflicting"
	case TooDear:
		return "too dear"
	case Undecided:
		return "undecided"
	}
	return fmt.Sprintf("status(%d)", int(s))
}

// Solution is the answer to a Problem.
type Solution struct {
	Status Status
	Chosen []Bid            // the set, fixed bids included, in order of first unit
	Cost   protocol.Credits // of Chosen
	Finish time.Time        // latest end in Chosen

	// Violations and Excess are summed over Chosen.
	Violations int
	Excess     int

	// Exact says that no set is better by the objective. If it is false, the
	// limit was reached and the two bounds say what is proved: no set that is at
	// least as good in what comes before cost (finish) in the order above costs
	// less than CostBound (finishes before FinishBound).
	Exact       bool
	CostBound   protocol.Credits
	FinishBound time.Time

	Steps int   // of search, of Limit
	Nodes int   // of the search tree
	Units []int // for Unoffered and Conflicting: which units, in order
}

// Gap is how much cheaper a better set could be at most; zero when Exact.
func (s Solution) Gap() protocol.Credits { return s.Cost - s.CostBound }

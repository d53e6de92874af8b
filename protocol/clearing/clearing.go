// Package clearing decides who wins: the best set of offers that covers every
// unit of a request exactly once (winner determination).
//
// Solve is a function of the bids alone. It reads no clock and no random source,
// proves nothing by floating point, and ignores the order of the bids: every observer of
// the same bids names the same set.
//
// A valid set covers every unit exactly once, takes at most one offer of each
// seller's exclusive group, begins at one instant if the problem says so, and needs no more of a seller's cores at any instant
// than its joint capacity. Offers of a seller without a common group add up; an
// offer of several items is bought as a whole.
//
// The best valid set is the first by
//
//	fewest violated terms, least relative excess   (of bids that carry them)
//	cost, then finish    (objective cost)
//	finish, then cost    (objective time; cost-time, among the sets that cost
//	                     at most a twentieth more than the cheapest)
//	unit by unit in order: the bid that ends first, arrival, agent ID, offer ID
//
// where finish is the latest end of any item. Ties between sets are broken unit by
// unit because the source ranks single bids only: by price, deadline, arrival.
//
// The search is exact. It uses components, dominance, a Lagrangian bound whose
// seller problems respect groups and capacity, reduced-cost fixing, and branching on
// the unit with the fewest live offers; after a part of the limit it branches on offers that
// a linear relaxation splits (package lp), within the limits of the criteria above and tightened
// by cliques of offers that exclude each other, whose rounded prices give the bound. It is also
// any-time: at its limit it returns the best set found, the proved bounds, and Exact false.
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
	// DefaultLimit is rarely more than three seconds of search on one core. From 8,192 items on it
	// is a part of that.
	DefaultLimit = 280_000_000
)

// ErrProblem reports a problem with invalid units, objective or fixed bids. Solve
// ignores invalid Problem.Bids, so that no seller can stop an auction by an offer.
var ErrProblem = errors.New("clearing: bad problem")

// Bid is a bid as the search ranks it.
type Bid struct {
	protocol.Bid
	Arrival int // place in the order of arrival; ties go to the smaller

	// For the closest set, when nothing satisfies the request (protocol, auction
	// step 5). Zero for an offer that meets every term.
	Violations int // violated terms, summed over the items
	Excess     int // per mille of the requested terms, summed over the items
}

// Problem is a request and the bids for it.
type Problem struct {
	Units     int                                  // units to cover, numbered from 0; 1..protocol.MaxUnits
	Bids      []Bid                                // in any order
	Capacity  map[protocol.AgentID][]protocol.Span // joint cores of a seller: the least of overlapping spans, without limit outside them
	Fixed     []Bid                                // already agreed, and part of the set
	Together  bool                                 // all items of the set start at the same instant
	Objective protocol.Objective
	MaxCost   protocol.Credits // of the set, fixed bids included; 0: no ceiling
	MaxFinish time.Time        // of the set; zero: no ceiling
	Limit     int              // steps of search, about 10 ns each; 0: DefaultLimit

	first int // steps before a tree over the relaxation; 0: a part of Limit
}

// Status is the outcome of Solve. The numbers may be stored.
type Status int

// The statuses. Only Covered comes with a set.
const (
	Covered     Status = 1 // Chosen covers every unit
	Unoffered   Status = 2 // Units have no valid offer
	Conflicting Status = 3 // Units have offers, but no set covers all of them together
	TooDear     Status = 4 // every set exceeds MaxCost, and costs at least CostBound
	Undecided   Status = 5 // the limit came before any set was found
)

func (s Status) String() string {
	if s < Covered || s > Undecided {
		return fmt.Sprintf("status(%d)", int(s))
	}
	return [...]string{"covered", "unoffered", "conflicting", "too dear", "undecided"}[s-1]
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

	// Exact means that no set is better by the objective. Otherwise the search reached
	// its limit, and proved only the bounds: no set that is as good in the criteria
	// before cost (finish) costs less than CostBound (finishes before FinishBound).
	Exact       bool
	CostBound   protocol.Credits
	FinishBound time.Time

	Steps int   // of search, of Limit
	Nodes int   // of the search tree
	Units []int // of Unoffered and Conflicting, in order
}

// Bids returns the set in the form that a commit takes.
func (s Solution) Bids() []protocol.Bid {
	list := make([]protocol.Bid, len(s.Chosen))
	for i, b := range s.Chosen {
		list[i] = b.Bid
	}
	return list
}

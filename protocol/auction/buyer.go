package auction

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
	"ramp/rfql"
)

// BuyerState is where a Buyer stands. The numbers are shown, never stored: an
// auction does not outlive its process.
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

// Want is what the buyer checks an offer for one unit against.
type Want struct {
	Ceiling   protocol.Credits // per core-hour
	NotBefore time.Time        // zero: from now on
	LastStart time.Time        // zero: none; the buyer's own limit, which sellers do not see
	End       time.Time
	Wall      time.Duration
	Cores     int
	Contract  rfql.Contract // zero: it is not metered
}

// BuyerConfig is one request for quotation and how to ask for it.
type BuyerConfig struct {
	Self         protocol.AgentID
	Conversation string
	Document     []byte // as sent in round 1
	Wants        []Want // one per unit of the document
	Sellers      []protocol.AgentID
	Rounds       int
	RoundLimit   time.Duration
	NoEarlyClose bool // fixed rounds, as the source's
	Objective    protocol.Objective
	MaxCost      protocol.Credits // of the whole set; 0: none
	Terms        []protocol.Terms
	Modes        []protocol.Mode
	Launch       *message.Intent // what is to run in what is bought; nil: nothing
	CallAtMost   int             // sellers over direct streams, more by gossip; 0: protocol.MaxGossipless
	// Budget is how many sellers a round asks if there are more than CallAtMost,
	// as Prospects promise; 0: everybody.
	Budget    int
	Prospects []Prospect // one for each of Sellers, if there is a Budget
}

// Validate names the field that is wrong and what is allowed.
func (c BuyerConfig) Validate() error {
	switch {
	case len(c.Wants) < 1 || len(c.Wants) > protocol.MaxUnits:
		return fmt.Errorf("auction: %d units, want 1..%d", len(c.Wants), protocol.MaxUnits)
	case c.Rounds < 1 || c.Rounds > protocol.MaxRounds:
		return fmt.Errorf("auction: %d rounds, want 1..%d", c.Rounds, protocol.MaxRounds)
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
	maxStanding   = 1 << 16            // offers that a buyer remembers in one auction; further ones are not heard
	maxOfSeller   = protocol.MaxOffers // of one seller, so that none pushes out the others
	maxBundles    = 128                // ceilings of bundles; further bundles stand without one
)

// Buyer is the buyer's side of one auction.
type Buyer struct {
	cfg      BuyerConfig
	timing   *Timing
	state    BuyerState
	round    int
	called   time.Time // when this round's cfp left
	deadline time.Time
	limit    time.Time // of the round, whatever patience says
	gossiped bool      // the round is called by gossip: silence is legal

	sellers  map[protocol.AgentID]*bidder
	order    []protocol.AgentID // sellers in the order they were called
	awaited  int                // due sellers that have not answered this round
	ceilings []protocol.Credits
	stood    stood
	scout    *scout // nil: everybody is asked
	bundles  map[string]message.BundleCeiling
	standing []clearing.Bid
	places   map[place]int // in standing
	single   []bool        // by unit: an offer for it alone stands
	arrivals int
	rounds   []message.Round
	result   Result
}

// stood is what this round's cfp named. Offers are judged by it, and not by what others
// answered before them in the same round: who comes first must not decide.
type stood struct {
	ceilings []protocol.Credits
	single   []bool                      // by unit: an offer for it alone stood
	bundles  map[string]protocol.Credits // the least cost
}

// bidder is what a buyer knows of one seller in this auction.
type bidder struct {
	answered int  // last round it answered
	due      bool // waited for in this round
	informed bool // it has the document: it has answered to it
	offers   int  // of its that stand
	reasons  []protocol.Reason
	spans    []protocol.Span
	heard    bool

	called   bool                     // by name
	asks     map[int]protocol.Credits // its lowest offers, by unit
	drop     protocol.Credits         // how far it went below the ceiling
	measured bool                     // drop is known
}

// place is where an offer stands: a later one of the same seller for the same
// units in the same group takes it.
type place struct {
	seller       protocol.AgentID
	units, group string
}

// Result is what an auction came to.
type Result struct {
	Solution clearing.Solution
	Best     bool // from the best-offer round: terms are violated
}

// NewBuyer starts an auction: its Output is the first cfp. A Buyer with no
// seller to ask has failed at once.
func NewBuyer(now time.Time, cfg BuyerConfig, timing *Timing) (*Buyer, protocol.Output) {
	b := &Buyer{
		cfg: cfg, timing: timing, sellers: map[protocol.AgentID]*bidder{},
		ceilings: make([]protocol.Credits, len(cfg.Wants)),
		bundles:  map[string]message.BundleCeiling{},
		places:   map[place]int{},
		single:   make([]bool, len(cfg.Wants)),
	}
	for i, w := range cfg.Wants {
		b.ceilings[i] = w.Ceiling
	}
	if len(cfg.Sellers) == 0 {
		return b, b.becomeFailed()
	}
	b.ask()
	return b, b.becomeCalling(now, 1, b.callees(1, false))
}

// ask makes bidders of everybody, or a scout that will choose some.
func (b *Buyer) ask() {
	if b.gossips() && b.cfg.Budget > 0 {
		b.scout = newScout(b.cfg)
		return
	}
	b.order = slices.Clone(b.cfg.Sellers)
	for _, id := range b.order {
		b.sellers[id] = &bidder{}
	}
}

// State is where the auction stands.
func (b *Buyer) State() BuyerState { return b.state }

// Over reports whether bidding has ended.
func (b *Buyer) Over() bool { return b.state >= Awarded }

// Result is what the auction came to; it is empty before Over.
func (b *Buyer) Result() Result { return b.result }

// Rounds are the rounds that have ended, in order.
func (b *Buyer) Rounds() []message.Round { return b.rounds }

// Round is the number of the running round, from 1; the best-offer round counts.
func (b *Buyer) Round() int { return b.round }

// Until is when the running round ends at the latest.
func (b *Buyer) Until() time.Time { return b.deadline }

// Wake ends the round when it is over.
func (b *Buyer) Wake(now time.Time) protocol.Output {
	if b.Over() {
		return protocol.Output{}
	}
	if now.Before(b.deadline) {
		return protocol.Output{WakeAt: b.deadline}
	}
	b.missed()
	return b.endRound(now)
}

// missed remembers who was waited for in vain: nobody in a gossiped round.
func (b *Buyer) missed() {
	for _, id := range b.order {
		if s := b.sellers[id]; s.due && s.answered < b.round {
			b.timing.Missed(id)
		}
	}
}

// Receive takes a seller's answer.
func (b *Buyer) Receive(now time.Time, m protocol.Message) protocol.Output {
	s := b.bidderOf(m.Sender)
	if s == nil || b.Over() {
		return protocol.Output{} // nobody asked it, or bidding is over
	}
	switch body := m.Body.(type) {
	case message.Proposal:
		s.heard, s.informed = true, true
		if b.state == Calling { // the best-offer round says nothing of the terms
			s.reasons = body.Refusals
		}
		s.spans = body.Capacity
		b.hear(now, m.Sender, s, body)
		return b.answered(now, m.Sender, s, body.Round)
	case message.Refusal:
		s.heard, s.informed = true, knowsDocument(body)
		if b.state == Calling && !stands(body) {
			s.reasons = body.Reasons
		}
		return b.answered(now, m.Sender, s, body.Round)
	case message.Undeliverable:
		return b.unreachable(now, body.To)
	}
	return protocol.Output{}
}

// hear takes the offers of a proposal; in a gossiped round no more proposals than
// the budget allows, and with the last of them the round is over.
func (b *Buyer) hear(now time.Time, id protocol.AgentID, s *bidder, p message.Proposal) {
	if !b.budgeted() || !b.gossiped {
		b.take(now, id, s, p)
		return
	}
	if b.scout.taken < b.cfg.Budget && b.take(now, id, s, p) {
		b.scout.taken++
	}
}

// enough reports whether a gossiped round has all the answers it wants.
func (b *Buyer) enough() bool {
	return b.gossiped && b.budgeted() && b.scout.taken >= b.cfg.Budget && !b.cfg.NoEarlyClose
}

// bidderOf finds who answers; a seller called by gossip may be new.
func (b *Buyer) bidderOf(id protocol.AgentID) *bidder {
	if id == protocol.LocalMesh {
		return &bidder{}
	}
	s := b.sellers[id]
	if s == nil && b.gossips() && len(b.order) < maxStanding {
		s = &bidder{}
		b.sellers[id] = s
		b.order = append(b.order, id)
	}
	return s
}

func stands(r message.Refusal) bool {
	return len(r.Reasons) > 0 && r.Reasons[0].Code == protocol.CodeStands
}

// knowsDocument reports whether who refuses so has the document. One that
// restarted, or was not open yet in round 1, has not.
func knowsDocument(r message.Refusal) bool {
	if len(r.Reasons) == 0 {
		return true
	}
	switch r.Reasons[0].Code {
	case protocol.CodeUnknown, protocol.CodeUnavailable, protocol.CodeDraining:
		return false
	}
	return true
}

// answered counts an answer to the running round and ends the round when all
// who are due have answered. A late answer counts as bids, not as punctuality.
func (b *Buyer) answered(now time.Time, id protocol.AgentID, s *bidder, round int) protocol.Output {
	if round != b.round || s.answered == round {
		return protocol.Output{}
	}
	s.answered = round
	if !b.gossiped { // who answers gossip may take its time
		b.timing.Answered(id, now.Sub(b.called))
	}
	return b.settleDue(now, s)
}

func (b *Buyer) unreachable(now time.Time, id protocol.AgentID) protocol.Output {
	s := b.sellers[id]
	if s == nil || s.answered == b.round {
		return protocol.Output{}
	}
	s.answered = b.round
	if len(s.reasons) == 0 {
		s.reasons = []protocol.Reason{{Code: protocol.CodeSilent, Unit: protocol.AllUnits, Note: "cannot be reached"}}
	}
	b.timing.Missed(id)
	return b.settleDue(now, s)
}

func (b *Buyer) settleDue(now time.Time, s *bidder) protocol.Output {
	if b.enough() {
		return b.endRound(now)
	}
	if !s.due {
		return protocol.Output{}
	}
	s.due = false
	b.awaited--
	if b.awaited > 0 || b.cfg.NoEarlyClose {
		return protocol.Output{}
	}
	return b.endRound(now)
}

// gossips reports whether there are too many sellers to call one by one.
func (b *Buyer) gossips() bool { return len(b.cfg.Sellers) > b.cfg.callAtMost() }

func (c BuyerConfig) callAtMost() int {
	if c.CallAtMost > 0 {
		return c.CallAtMost
	}
	return protocol.MaxGossipless
}

// endRound records the round and goes on to the next state.
func (b *Buyer) endRound(now time.Time) protocol.Output {
	b.record(now)
	switch {
	case b.state == BestOffer:
		return b.becomeClosestOrFailed(now)
	case b.round < b.mostRounds():
		if to := b.callees(b.round+1, false); len(to) > 0 {
			return b.becomeCalling(now, b.round+1, to)
		}
	}
	if sol, ok := b.Solve(now, nil, nil); ok {
		return b.becomeAwarded(sol)
	}
	return b.becomeBestOffer(now)
}

func (b *Buyer) becomeCalling(now time.Time, round int, to []protocol.AgentID) protocol.Output {
	if b.state > Calling {
		panic(fmt.Sprintf("auction: %s cannot go on calling", b.state))
	}
	b.state, b.round = Calling, round
	return b.call(now, to, false)
}

func (b *Buyer) becomeBestOffer(now time.Time) protocol.Output {
	if b.state != Calling {
		panic(fmt.Sprintf("auction: %s has no best-offer round", b.state))
	}
	b.state = BestOffer
	b.round++
	return b.call(now, b.callees(b.round, true), true)
}

func (b *Buyer) becomeAwarded(sol clearing.Solution) protocol.Output {
	b.state = Awarded
	b.result = Result{Solution: sol}
	return protocol.Output{}
}

func (b *Buyer) becomeClosestOrFailed(now time.Time) protocol.Output {
	if sol, ok := b.Solve(now, nil, nil); ok {
		return b.becomeAwarded(sol)
	}
	sol, ok := b.solveClosest(now)
	if !ok {
		return b.becomeFailed()
	}
	b.state = Closest
	b.result = Result{Solution: sol, Best: true}
	return protocol.Output{}
}

func (b *Buyer) becomeFailed() protocol.Output {
	b.state = Failed
	return protocol.Output{}
}

package auction

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// Buyer is the buyer's side of one auction: its rounds and its outcome.
type Buyer struct {
	cfg      *BuyerConfig
	state    BuyerState
	round    int
	begun    time.Time
	called   time.Time // when this round's cfp left
	deadline time.Time
	limit    time.Time // of the round, regardless of patience
	gossiped bool      // the round is called by gossip: sellers may keep silent
	rounds   []message.Round

	sellers  *bidders
	standing *standing
	scout    *scout // nil: the buyer asks everybody

	solution clearing.Solution
	best     bool // the solution violates terms
	approved bool // by the owner
}

// NewBuyer starts an auction; its Output is the first cfp. Without any seller the
// Buyer fails at once.
func NewBuyer(now time.Time, cfg BuyerConfig, timing *Timing) (*Buyer, protocol.Output) {
	b := &Buyer{
		cfg:      &cfg,
		begun:    now,
		sellers:  &bidders{timing: timing, byID: map[protocol.AgentID]*bidder{}},
		standing: newStanding(cfg.Wants, cfg.last),
	}
	b.standing.fixed = cfg.NoEarlyClose
	b.standing.together.wanted = cfg.SameStart && len(cfg.Wants) > 1
	b.standing.together.restart(cfg.Wants)
	if len(cfg.Sellers) == 0 {
		return b, b.becomeFailed()
	}
	if (b.gossips() || cfg.Shortlist) && cfg.Budget > 0 {
		b.scout = newScout(b.cfg, b.sellers, b.standing)
		b.standing.budgeted = true
	} else {
		for i, id := range cfg.Sellers {
			s := b.sellers.add(id)
			if len(cfg.Prospects) > 0 {
				s.least = cfg.Prospects[i].Min
			}
		}
	}
	return b, b.becomeCalling(now, 1, b.callees(1, false))
}

// State returns the state of the auction.
func (b *Buyer) State() BuyerState { return b.state }

// Over reports whether bidding has ended.
func (b *Buyer) Over() bool { return b.state >= Awarded }

// Result returns the outcome of the auction; it is empty before Over.
func (b *Buyer) Result() Result { return Result{b.solution.Bids(), b.solution.Exact, b.best} }

// Rounds returns the rounds that have ended, in order.
func (b *Buyer) Rounds() []message.Round { return b.rounds }

// Round is the number of the running round, from 1; the best-offer round counts.
func (b *Buyer) Round() int { return b.round }

// Until is when the running round ends at the latest.
func (b *Buyer) Until() time.Time { return b.deadline }

// Bidders returns the sellers with an offer that stands, in the order of their
// first call or answer.
func (b *Buyer) Bidders() []protocol.AgentID {
	var list []protocol.AgentID
	for _, id := range b.sellers.order {
		if b.sellers.byID[id].offers > 0 {
			list = append(list, id)
		}
	}
	return list
}

// Sizes returns how much a buyer remembers of one auction, with the bounds.
func (b *Buyer) Sizes() []protocol.Size {
	most := 0
	for _, s := range b.sellers.byID {
		most = max(most, s.offers)
	}
	return []protocol.Size{
		{Of: "sellers asked", N: len(b.sellers.order), Most: maxStanding},
		{Of: "offers", N: len(b.standing.bids), Most: maxStanding},
		{Of: "offers of one seller", N: most, Most: maxOfSeller},
		{Of: "ceilings of bundles", N: len(b.standing.bundles), Most: maxBundles},
		{Of: "rounds", N: len(b.rounds), Most: protocol.MaxRounds + 1},
	}
}

// Wake ends the round at its deadline.
func (b *Buyer) Wake(now time.Time) protocol.Output {
	if b.Over() {
		return protocol.Output{}
	}
	if now.Before(b.deadline) {
		return protocol.Output{WakeAt: b.deadline}
	}
	b.sellers.missed(b.round)
	return b.endRound(now)
}

// Receive takes a seller's answer.
func (b *Buyer) Receive(now time.Time, m protocol.Message) protocol.Output {
	s := b.bidderOf(m.Sender)
	if s == nil || b.Over() {
		return protocol.Output{} // unsolicited, or bidding is over
	}
	switch body := m.Body.(type) {
	case message.Proposal:
		s.replied, s.informed = true, true
		if b.state == Calling { // the best-offer round does not concern the terms
			s.reasons = body.Refusals
		}
		s.spans = body.Capacity
		s.show(body.Offers)
		if b.scout != nil && b.gossiped {
			b.scout.hear(now, m.Sender, s, body)
		} else {
			b.standing.take(now, m.Sender, s, body)
		}
		return b.answered(now, m.Sender, s, body.Round)
	case message.Refusal:
		s.replied, s.informed = true, knowsDocument(body)
		if b.state == Calling && !stands(body) {
			s.reasons = body.Reasons
		}
		return b.answered(now, m.Sender, s, body.Round)
	case message.Undeliverable:
		return b.unreachable(now, body.To)
	}
	return protocol.Output{}
}

// enough reports whether a gossiped round has all the answers that it wants.
func (b *Buyer) enough() bool {
	return b.gossiped && b.scout != nil && b.scout.taken >= b.cfg.Budget && !b.cfg.NoEarlyClose
}

// bidderOf finds the sender of an answer; a seller called by gossip may be new.
func (b *Buyer) bidderOf(id protocol.AgentID) *bidder {
	if id == protocol.LocalMesh {
		return &bidder{}
	}
	s := b.sellers.byID[id]
	if s == nil && b.gossips() && len(b.sellers.order) < maxStanding {
		s = b.sellers.add(id)
	}
	return s
}

// answered counts an answer to the running round. A late answer still counts as a
// bid, but not as punctual.
func (b *Buyer) answered(now time.Time, id protocol.AgentID, s *bidder, round int) protocol.Output {
	if round != b.round || s.answered == round {
		return protocol.Output{}
	}
	s.answered = round
	if !b.gossiped { // gossip allows slow answers
		b.sellers.timing.Answered(id, now.Sub(b.called))
	}
	return b.settleDue(now, s)
}

func (b *Buyer) unreachable(now time.Time, id protocol.AgentID) protocol.Output {
	s := b.sellers.byID[id]
	if s == nil || s.answered == b.round {
		return protocol.Output{}
	}
	s.answered = b.round
	if len(s.reasons) == 0 {
		s.reasons = []protocol.Reason{{Code: protocol.CodeSilent, Unit: protocol.AllUnits, Note: "cannot be reached"}}
	}
	b.sellers.timing.Missed(id)
	return b.settleDue(now, s)
}

// settleDue ends the round once every seller that is due has answered.
func (b *Buyer) settleDue(now time.Time, s *bidder) protocol.Output {
	if b.enough() {
		return b.endRound(now)
	}
	if !s.due {
		return protocol.Output{}
	}
	s.due = false
	b.sellers.awaited--
	if b.sellers.awaited > 0 || b.cfg.NoEarlyClose {
		return protocol.Output{}
	}
	return b.endRound(now)
}

// gossips reports whether there are too many sellers to call one by one.
func (b *Buyer) gossips() bool { return !b.cfg.Shortlist && len(b.cfg.Sellers) > b.cfg.callAtMost() }

func (c BuyerConfig) callAtMost() int { return cmp.Or(max(c.CallAtMost, 0), protocol.MaxGossipless) }

// usualRounds returns the number of rounds, if it is fixed. An auction with a budget
// and without a shortlist has one more: its first finds idle machines, which price bands do not show. It takes
// no longer, because sellers called by name answer.
func (b *Buyer) usualRounds() int {
	rounds := cmp.Or(b.cfg.Rounds, protocol.DefaultRounds) + b.standing.together.calls
	if b.scout == nil || b.cfg.Shortlist {
		return rounds
	}
	return min(rounds+1, protocol.MaxRounds)
}

// goesOn reports whether another round follows. Without a fixed number, it follows one
// in which somebody improved, while it ends as soon as the usual number of rounds may;
// and one in which answers are missing, up to that number.
func (b *Buyer) goesOn(now time.Time) bool {
	last := b.begun.Add(protocol.DefaultRounds * b.cfg.RoundLimit)
	switch heardAll := b.sellers.awaited == 0 && !b.gossiped; {
	case b.cfg.Rounds > 0 || b.cfg.NoEarlyClose || !heardAll && b.round < b.usualRounds():
		return b.round < b.usualRounds()
	case b.round >= protocol.MostRounds+b.standing.together.calls || now.Add(b.cfg.RoundLimit).After(last):
		return false
	}
	return b.standing.improved
}

// callees returns the receivers of a round's cfp; none, if no round is needed. A
// small market calls everybody, and then its contenders. A large one calls everybody by gossip in the first
// and in the best-offer round, and otherwise the bidders; with a budget the scout
// chooses. A search for a common start goes on with the bidders.
func (b *Buyer) callees(round int, best bool) []protocol.AgentID {
	if b.standing.together.calls > 0 && b.standing.together.searches() {
		return b.Bidders()
	}
	if b.scout != nil {
		return b.scout.callees(round, best)
	}
	if !b.gossips() {
		if round == 1 {
			return b.sellers.order
		}
		return b.contenders(best)
	}
	var bidders []protocol.AgentID
	seen := map[protocol.AgentID]bool{}
	for _, bid := range b.standing.bids {
		if !seen[bid.Seller] {
			seen[bid.Seller] = true
			bidders = append(bidders, bid.Seller)
		}
	}
	if round == 1 || best || len(bidders) == 0 || len(bidders) > b.cfg.callAtMost() {
		return []protocol.AgentID{protocol.Everyone}
	}
	return bidders
}

// endRound records the round and goes on to the next state.
func (b *Buyer) endRound(now time.Time) protocol.Output {
	b.record(now)
	switch more := b.search(now); {
	case more && b.state == BestOffer:
		b.round++
		return b.call(now, b.callees(b.round, true))
	case more:
		return b.becomeCalling(now, b.round+1, b.callees(b.round+1, false))
	case b.state == BestOffer:
		return b.becomeClosestOrFailed(now)
	case b.goesOn(now):
		if to := b.callees(b.round+1, false); len(to) > 0 {
			return b.becomeCalling(now, b.round+1, to)
		}
	}
	if sol, ok := b.solve(now, nil, nil, false); ok {
		return b.becomeAwarded(sol)
	}
	return b.becomeBestOffer(now)
}

func (b *Buyer) becomeCalling(now time.Time, round int, to []protocol.AgentID) protocol.Output {
	if b.state > Calling {
		panic(fmt.Sprintf("auction: %s cannot go on calling", b.state))
	}
	b.state, b.round = Calling, round
	return b.call(now, to)
}

func (b *Buyer) becomeBestOffer(now time.Time) protocol.Output {
	if b.state != Calling {
		panic(fmt.Sprintf("auction: %s has no best-offer round", b.state))
	}
	b.state = BestOffer
	b.standing.together.restart(b.cfg.Wants)
	to := b.callees(b.round+1, true)
	if len(to) == 0 {
		return b.becomeClosestOrFailed(now)
	}
	b.round++
	return b.call(now, to)
}

func (b *Buyer) becomeAwarded(sol clearing.Solution) protocol.Output {
	b.state = Awarded
	b.solution = sol
	return protocol.Output{}
}

func (b *Buyer) becomeClosestOrFailed(now time.Time) protocol.Output {
	if sol, ok := b.solve(now, nil, nil, false); ok {
		return b.becomeAwarded(sol)
	}
	sol, ok := b.solve(now, nil, nil, true)
	if !ok {
		return b.becomeFailed()
	}
	b.state = Closest
	b.solution, b.best = sol, true
	return protocol.Output{}
}

func (b *Buyer) becomeFailed() protocol.Output {
	b.state = Failed
	return protocol.Output{}
}

// Offers are the cheapest offers of each seller that stand, for one unit.
func (b *Buyer) Offers() []protocol.Bid {
	var list []protocol.Bid
	for _, bid := range b.standing.bids {
		if len(bid.Offer.Items) != 1 || bid.Violations > 0 {
			continue
		}
		i := slices.IndexFunc(list, func(x protocol.Bid) bool { return x.Seller == bid.Seller })
		switch {
		case i < 0:
			list = append(list, bid.Bid)
		case bid.Offer.Items[0].Price < list[i].Offer.Items[0].Price:
			list[i] = bid.Bid
		}
	}
	return list
}

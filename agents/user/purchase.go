package user

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The states of a purchase, as stored and shown.
const (
	StateBidding     = "bidding"
	StateApproval    = "awaiting approval"
	StateVoting      = "voting"
	StateConfirming  = "confirming"
	StateDeciding    = "deciding"
	StateSettled     = "settled"
	StateVoid        = "void"
	StateFailed      = "failed"
	StateQuoted      = "quoted"
	StateInterrupted = "interrupted"
	StateCancelled   = "cancelled"
	StateCancelling  = "cancelling"
)

// purchase is one conversation that is going on.
type purchase struct {
	view  message.Purchase
	row   Row
	buyer *auction.Buyer
	coord *reserve.Coordinator

	answerBy time.Time          // for the owner's approval
	refused  bool               // by the owner
	stopped  bool               // cancelled by the owner
	approved *clearing.Solution // by the owner; nil: it was not asked
	unsaved  bool               // begun, but its record is not saved yet
	told     string             // the last progress that was told, so that each is told once
}

// live reports whether the purchase still needs its owner or others.
func live(state string) bool {
	switch state {
	case StateBidding, StateApproval, StateVoting, StateConfirming, StateDeciding:
		return true
	}
	return false
}

// receive brings a message to the machine whose turn it is.
func (p *purchase) receive(now time.Time, m protocol.Message) protocol.Output {
	if p.coord != nil {
		return p.coord.Receive(now, m)
	}
	if p.buyer != nil {
		return p.buyer.Receive(now, m)
	}
	return protocol.Output{}
}

func (p *purchase) wake(now time.Time) protocol.Output {
	switch {
	case p.coord != nil:
		return p.coord.Wake(now)
	case p.view.State == StateApproval:
		return protocol.Output{WakeAt: p.answerBy}
	case p.buyer != nil:
		return p.buyer.Wake(now)
	}
	return protocol.Output{}
}

// buy starts a purchase, or tells how an earlier one with the same ID stands.
func (r *Role) buy(now time.Time, order message.Buy) protocol.Output {
	if p := r.purchases[order.ID]; p != nil {
		return p.tell("")
	}
	if r.ended[order.ID] { // its record stands; it is not bought a second time
		p := &purchase{view: message.Purchase{ID: order.ID, RFQ: order.Name, State: StateFailed, Why: "a purchase of this ID is over already"}}
		return p.tell("done")
	}
	p := &purchase{view: message.Purchase{ID: order.ID, RFQ: order.Name, State: StateBidding, Created: now, Units: []message.PurchasedUnit{}, Rounds: []message.Round{}}}
	cfg, err := r.buyerConfig(now, order)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		p.view.Found = len(r.Known(now, protocol.KindResource)) // it is not for want of a market
		return r.fail(now, p, StateFailed, err.Error())
	}
	p.row = Row{Order: order, Terms: cfg.Terms[0]}
	if q := order.Replaces; q != nil {
		p.view.Replaces = q.Of
	}
	p.view.Mode = cfg.Modes[0]
	p.view.Currency, p.view.Bank, p.view.Found = cfg.Terms[0].Currency, cfg.Terms[0].Bank, len(cfg.Sellers)
	for _, w := range cfg.Wants {
		if w.End.After(p.view.Deadline) {
			p.view.Deadline = w.End
		}
	}
	if len(r.purchases) >= maxPurchases {
		return r.fail(now, p, StateFailed, "too many purchases are going on")
	}
	r.purchases[order.ID] = p
	r.order = append(r.order, order.ID)
	p.unsaved = !order.Options.QuoteOnly
	var called protocol.Output
	p.buyer, called = auction.NewBuyer(now, cfg, r.timing)
	out := p.tell("found").Join(protocol.Output{WakeAt: now})
	return out.Join(r.advance(now, p, called))
}

// saveBegun saves purchases that have begun. Nothing rests on that record but
// what the owner sees after a crash, so the first call for proposals does not
// wait for the disk: it is saved one step later.
func (r *Role) saveBegun() protocol.Output {
	var out protocol.Output
	for _, id := range r.order {
		if p := r.purchases[id]; p.unsaved {
			p.unsaved = false
			out.Save = append(out.Save, p.save())
		}
	}
	return out
}

// buyerConfig is how an order is asked for in the market.
func (r *Role) buyerConfig(now time.Time, order message.Buy) (auction.BuyerConfig, error) {
	wants, requests, err := wantsOf(order.Document, now, order.Options.MaxWait)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	sellers := r.Known(now, protocol.KindResource)
	terms, err := r.terms(now, order.Options.Terms, sellers)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	o := order.Options
	mode, err := r.mode(now, o.Mode, terms, requests, sellers)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	cfg := auction.BuyerConfig{
		Self: r.ID(), Conversation: order.ID, Document: order.Document, Wants: wants,
		Rounds: o.Rounds, RoundLimit: o.RoundLimit, NoEarlyClose: o.NoEarlyClose,
		Objective: o.Objective, MaxCost: o.MaxCost, CallAtMost: r.cfg.CallAtMost, Budget: r.cfg.Budget,
		Terms: []protocol.Terms{terms}, Modes: []protocol.Mode{mode},
		Launch: order.Launch(),
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = protocol.DefaultRounds
	}
	if cfg.RoundLimit == 0 {
		cfg.RoundLimit = protocol.DefaultRoundLimit
	}
	if cfg.Objective == 0 {
		cfg.Objective = protocol.ObjectiveCost
	}
	cfg.Sellers = make([]protocol.AgentID, len(sellers))
	for i := range sellers {
		cfg.Sellers[i] = sellers[i].ID
	}
	if cfg.Budget > 0 {
		cfg.Prospects = prospectsOf(requests, terms, sellers)
	}
	return cfg, nil
}

// advance carries a purchase on after its machine has answered with out.
func (r *Role) advance(now time.Time, p *purchase, out protocol.Output) protocol.Output {
	switch {
	case p.coord != nil:
		return out.Join(r.afterCommit(now, p))
	case p.view.State == StateApproval:
		return out.Join(r.awaitApproval(now, p))
	case p.buyer != nil && p.buyer.Over():
		return out.Join(r.afterAuction(now, p))
	case p.stopped:
		return out.Join(r.finish(now, p, StateCancelled, "cancelled before anything was bought"))
	case p.buyer != nil && len(p.buyer.Rounds()) != len(p.view.Rounds):
		p.view.Rounds = p.buyer.Rounds()
		return out.Join(p.tell("round"))
	}
	return out
}

// afterAuction quotes, asks the owner, votes, or fails.
func (r *Role) afterAuction(now time.Time, p *purchase) protocol.Output {
	p.view.Rounds = p.buyer.Rounds()
	p.view.AuctionMS = auction.Milliseconds(now.Sub(p.view.Created))
	p.view.Reasons, p.view.Programs = codes(p.buyer.Why()), p.buyer.Programs()
	if p.buyer.State() == auction.Failed {
		p.advise()
		why := "no set of offers covers every unit"
		if p.view.Found == 0 {
			why = "no resource is known"
		}
		return r.finish(now, p, StateFailed, why)
	}
	res := p.buyer.Result()
	p.show(res.Solution.Chosen)
	p.view.Exact = res.Solution.Exact
	if res.Best {
		p.advise()
		p.view.Violations = p.buyer.Violations(res.Solution.Chosen)
	}
	switch {
	case p.row.Order.Options.QuoteOnly:
		return r.finish(now, p, StateQuoted, "")
	case res.Best && p.row.Order.Replaces != nil: // nobody waits to be asked
		return r.finish(now, p, StateFailed, "no offer meets the request")
	case res.Best || p.row.Order.Options.Approve:
		p.view.State = StateApproval
		p.answerBy = now.Add(ApprovalTime)
		return p.tell("approval").Join(protocol.Output{Save: []protocol.Record{p.save()}, WakeAt: p.answerBy})
	}
	return r.vote(now, p, res.Solution.Chosen)
}

// advise says what would help, in figures and in words.
func (p *purchase) advise() {
	p.view.Relaxations = p.buyer.Relaxations()
	p.view.Counters = p.buyer.Counters()
	p.view.Advice = p.view.Advice[:0]
	for _, r := range p.view.Relaxations {
		p.view.Advice = append(p.view.Advice, auction.AdviceOf(r))
	}
}

func (r *Role) awaitApproval(now time.Time, p *purchase) protocol.Output {
	switch {
	case p.stopped:
		return r.finish(now, p, StateCancelled, "cancelled before anything was bought")
	case p.refused:
		return r.finish(now, p, StateFailed, notApproved(p))
	case !now.Before(p.answerBy):
		return r.finish(now, p, StateFailed, notApproved(p))
	}
	return protocol.Output{WakeAt: p.answerBy}
}

func notApproved(p *purchase) string {
	if len(p.view.Violations) > 0 {
		return "no offer meets the request, and the closest set was not approved"
	}
	return "not approved"
}

// approved takes the owner's word.
func (r *Role) approved(now time.Time, a message.Approval) protocol.Output {
	p := r.purchases[a.ID]
	if p == nil || p.view.State != StateApproval {
		return protocol.Output{}
	}
	if !a.Yes {
		p.refused = true
		return r.advance(now, p, protocol.Output{})
	}
	set := p.buyer.Result().Solution
	p.approved = &set
	return r.vote(now, p, p.approved.Chosen)
}

// vote asks the chosen sellers to hold.
func (r *Role) vote(now time.Time, p *purchase, chosen []clearing.Bid) protocol.Output {
	p.view.State = StateVoting
	out := p.tell("voting")
	if p.unsaved { // a signed bundle must find its purchase after a crash
		p.unsaved = false
		out.Save = append(out.Save, p.save())
	}
	var asked protocol.Output
	p.coord, asked = reserve.NewCoordinator(now, r.coordinatorConfig(p), chosen)
	return out.Join(r.advance(now, p, asked))
}

func (r *Role) coordinatorConfig(p *purchase) reserve.CoordinatorConfig {
	sum := sha256.Sum256(p.row.Order.Document)
	cfg := reserve.CoordinatorConfig{
		Self: r.ID(), Conversation: p.view.ID, Terms: p.row.Terms, Mode: p.view.Mode,
		RFQ: hex.EncodeToString(sum[:]), Hold: r.cfg.Hold, Settle: r.cfg.Settle, Sign: r.sign,
	}
	if p.buyer != nil {
		cfg.Resolve = p.resolve
		if p.view.Mode == protocol.ModeMetered {
			cfg.Tariff = p.tariffs()
		}
	}
	return cfg
}

// resolve finds the best set when a vote was refused. Where the owner approved a
// set, another may take its place only if it is no worse for the owner.
func (p *purchase) resolve(now time.Time, fixed []clearing.Bid, excluded map[auction.Key]bool) (clearing.Solution, bool) {
	s, ok := p.buyer.Resolve(now, fixed, excluded)
	if a := p.approved; ok && a != nil && (s.Cost > a.Cost || s.Violations > a.Violations || s.Excess > a.Excess) {
		return clearing.Solution{}, false
	}
	return s, ok
}

// show makes the chosen offers the units of the view.
func (p *purchase) show(chosen []clearing.Bid) {
	p.view.Units = p.view.Units[:0]
	p.view.Total = 0
	for _, b := range chosen {
		for _, it := range b.Offer.Items {
			p.view.Total += it.Cost // bounded by clearing.MaxOfferCost and MaxUnits
			p.view.Units = append(p.view.Units, message.PurchasedUnit{
				Unit: it.Unit, Resource: b.Seller.Name(), Seller: b.Seller, Cores: it.Slot.Cores,
				Start: it.Slot.Start, End: it.Slot.End, Price: it.Price, Cost: it.Cost, State: "offered", Queued: b.Offer.Queued,
			})
		}
	}
	sortUnits(p.view.Units)
}

func codes(why map[protocol.Code]int) map[string]int {
	m := make(map[string]int, len(why))
	for c, n := range why {
		m[string(c)] = n
	}
	return m
}

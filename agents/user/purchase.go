package user

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
	"ramp/rfql"
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

// Over reports whether a state of a purchase is final.
func Over(state string) bool {
	return slices.Contains([]string{StateSettled, StateVoid, StateFailed, StateInterrupted, StateCancelled}, state)
}

// WhyUnmet is why nothing was bought if the nearest offers do not meet the request.
const WhyUnmet = "no offer meets the request"

// purchase is one conversation that is under way.
type purchase struct {
	row    Row           // what is saved of it
	search *index.Search // nil: over, or none was needed
	buyer  *auction.Buyer
	coord  *reserve.Coordinator

	listOf   func(site protocol.AgentID) protocol.Credits
	answerBy time.Time // for the owner's approval
	refused  bool      // by the owner
	stopped  bool      // cancelled by the owner
	unsaved  bool      // begun, but not saved yet
	reported string    // the last progress, so that each is reported once
}

// Undecided reports whether a purchase in this state still needs its owner or others, and
// may still be bought.
func Undecided(state string) bool {
	return slices.Contains([]string{StateBidding, StateApproval, StateVoting, StateConfirming, StateDeciding}, state)
}

// begin records what an order asks for, and on what terms.
func (p *purchase) begin(order message.Buy, cfg auction.BuyerConfig) {
	p.row.Order, p.row.Terms = order, cfg.Terms[0]
	p.row.State, p.row.Mode, p.row.Found = StateBidding, cfg.Modes[0], len(cfg.Sellers)
	p.row.Currency, p.row.Bank = p.row.Terms.Currency, p.row.Terms.Bank
	for _, w := range cfg.Wants {
		p.row.Deadline = protocol.Later(p.row.Deadline, w.End)
	}
}

// receive brings a message to the machine whose turn it is.
func (p *purchase) receive(now time.Time, m protocol.Message) protocol.Output {
	if p.coord != nil {
		return p.coord.Receive(now, m)
	}
	if p.buyer != nil {
		return p.buyer.Receive(now, m)
	}
	if p.search != nil {
		return p.search.Receive(now, m)
	}
	return protocol.Output{}
}

func (p *purchase) wake(now time.Time) protocol.Output {
	switch {
	case p.coord != nil:
		return p.coord.Wake(now)
	case p.row.State == StateApproval:
		return protocol.Output{WakeAt: p.answerBy}
	case p.buyer != nil:
		return p.buyer.Wake(now)
	case p.search != nil:
		return p.search.Wake(now)
	}
	return protocol.Output{}
}

// advise reports the nearest changes to the request that would get offers.
func (p *purchase) advise() {
	why := p.buyer.Explain()
	p.row.Relaxations, p.row.Counters = why.Relaxations(), why.Counters()
	p.row.Advice = p.row.Advice[:0]
	for _, r := range p.row.Relaxations {
		p.row.Advice = append(p.row.Advice, auction.AdviceOf(r))
	}
}

// tariffs gives the tariff of a unit at an item's prices, by the order's contracts.
func (p *purchase) tariffs() func(it protocol.Item) protocol.Tariff {
	doc, err := rfql.Parse(p.row.Order.Document, p.row.Created)
	return func(it protocol.Item) protocol.Tariff {
		if err != nil || it.Unit >= doc.Len() {
			return protocol.Tariff{} // cannot be: the order was parsed before
		}
		return doc.Request(it.Unit).Tariff(it)
	}
}

func (p *purchase) showOffers(chosen []protocol.Bid) {
	p.row.Units = p.row.Units[:0]
	p.row.Total = 0
	for _, b := range chosen {
		for _, it := range b.Offer.Items {
			p.row.Total += it.Cost // bounded by clearing.MaxOfferCost and MaxUnits
			p.row.Units = append(p.row.Units, Unit{
				Unit: it.Unit, Resource: b.Seller.Name(), Seller: b.Seller, Cores: it.Slot.Cores,
				Start: it.Slot.Start, End: it.Slot.End, Price: it.Price, Cost: it.Cost, State: "offered", List: p.listOf(b.Seller), Queued: b.Offer.Queued,
			})
		}
	}
	slices.SortStableFunc(p.row.Units, func(a, b Unit) int { return cmp.Compare(a.Unit, b.Unit) })
}

// showBundle makes the signed contract the units of the purchase.
func (p *purchase) showBundle() {
	v := p.coord.Bundle()
	p.row.showBundle(v.ID, v.Bundle)
}

func (p *purchase) setUnits(state string) {
	for i := range p.row.Units {
		p.row.Units[i].State = state
	}
}

// until is when the current phase ends at the latest: the round, the owner's time
// to approve, the last vote, or the bank's deadline. Zero: the purchase is over.
func (p *purchase) until() time.Time {
	switch {
	case !Undecided(p.row.State):
		return time.Time{}
	case p.coord != nil:
		return p.coord.Until()
	case p.row.State == StateApproval:
		return p.answerBy
	case p.buyer != nil:
		return p.buyer.Until()
	}
	return time.Time{}
}

// waits is why the bank has not decided, or empty.
func (p *purchase) waits() string {
	if p.coord == nil {
		return ""
	}
	return p.coord.Waits()
}

// report sends the owner the state of the purchase, once per event.
func (p *purchase) report(event string) protocol.Output {
	waits := p.waits()
	key := event + " " + strconv.Itoa(len(p.row.Rounds)) + " " + p.row.State + " " + waits
	if event != "" && key == p.reported {
		return protocol.Output{}
	}
	p.reported = key
	view := p.row.View()
	view.Until, view.Waits = p.until(), waits
	return toOwner(view.ID, message.Progress{Purchase: view, Event: event, Done: !Undecided(view.State)})
}

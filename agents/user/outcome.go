package user

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// afterCommit shows how vote and commit stand, and ends a decided purchase.
func (r *purchases) afterCommit(now time.Time, p *purchase) protocol.Output {
	c := p.coord
	p.row.State = c.State().String()
	if !c.Over() {
		p.showOffers(c.Chosen())
		agreed, asked := c.Votes()
		if c.State() != reserve.Voting {
			p.showBundle()
			p.row.VoteMS = auction.Milliseconds(c.Voted().Sub(p.row.Created)) - p.row.AuctionMS
		}
		return p.report(p.row.State + " " + strconv.Itoa(agreed) + "/" + strconv.Itoa(asked) + " " + strconv.Itoa(len(c.Sales())))
	}
	if c.State() == reserve.Failed {
		if rs := c.Refusals(); len(rs) > 0 {
			p.row.Refused = rs[len(rs)-1].Code
		}
		state := StateFailed
		if p.stopped {
			state = StateCancelled
		}
		why := "not every seller holds what it offered"
		if c.Unvouched() {
			why = "the bank does not vouch for the price"
			if c.ClocksDiffer() {
				p.row.Refused, why = protocol.CodeClock, "the clocks of the bank and this machine are far apart"+setClock
			}
		}
		return r.finish(now, p, state, p.failure(why))
	}
	p.showBundle()
	p.row.SettleMS = auction.Milliseconds(c.Decided().Sub(c.Voted()))
	if c.State() == reserve.Settled {
		p.row.Settled = true
		p.setUnits(StateSettled)
		return r.finish(now, p, StateSettled, "")
	}
	p.setUnits(StateVoid)
	p.row.Void = c.Receipt().Receipt.Reason
	ahead := c.Receipt().Receipt.Time.Sub(c.Decided()) // or more, if the contract lapsed
	if p.row.Void == protocol.CodeSettleBy && c.Decided().Before(c.Until()) && ahead > protocol.ClockSkew {
		p.row.Void = protocol.CodeClock
	}
	return r.finish(now, p, StateVoid, p.failure(voidReason(p.row.Void, ahead, unsigned(c))))
}

const setClock = ": set the one that is wrong ('ramp doctor' says which)"

// unsigned names the sellers that have not countersigned the contract.
func unsigned(c *reserve.Coordinator) []string {
	var names []string
	signed := c.Sales()
	for _, id := range c.Bundle().Sellers() {
		if !slices.ContainsFunc(signed, func(s contract.Sale) bool { return s.Seller.ID == id }) {
			names = append(names, id.Name())
		}
	}
	return names
}

// voidReason explains why the bank voided a contract. The bank does not reveal whose account is
// missing; the hint covers the case that people overlook, a site for which nobody has opened one.
func voidReason(why protocol.Code, ahead time.Duration, unsigned []string) string {
	words := "the bank voided the contract: " + string(why)
	switch why {
	case protocol.CodeAccount:
		words += ": the buyer or a seller has no account there ('ramp bank account open'), or is in no group"
	case protocol.CodeFunds:
		words += ": the buyer's account has too little"
	case protocol.CodeClock:
		return "the bank's clock is at least " + ahead.Round(time.Second).String() + " ahead of this machine's, which voids every purchase" + setClock
	case protocol.CodeMode:
		words += ": its currency is not paid at the reservation"
	case protocol.CodeSettleBy:
		if len(unsigned) > 0 {
			return words + ": not signed in time by " + strings.Join(unsigned, ", ")
		}
		words += ": the signed contract reached it too late"
	}
	return words
}

// failure explains why the commit failed.
func (p *purchase) failure(why string) string {
	if p.stopped {
		return "cancelled before it was settled"
	}
	if rs := p.coord.Refusals(); len(rs) > 0 {
		return why + " (" + rs[len(rs)-1].Words() + ")"
	}
	return why
}

// finish ends a purchase. It saves and reports it, and releases every seller that
// bid and was not chosen. Sellers forget quotes by themselves.
func (r *purchases) finish(now time.Time, p *purchase, state, why string) protocol.Output {
	p.row.State, p.row.Why = state, why
	if p.buyer != nil || p.coord != nil {
		p.row.ElapsedMS = auction.Milliseconds(now.Sub(p.row.Created))
	}
	delete(r.by, p.row.ID)
	r.order = slices.DeleteFunc(r.order, func(id string) bool { return id == p.row.ID })
	var out protocol.Output
	if !p.row.Order.Options.QuoteOnly { // a quote leaves no record
		r.end(p.row.ID)
		out.Save = []protocol.Record{p.row.save()}
	}
	out = out.Join(p.report("done"))
	if p.buyer != nil && !protocol.IsQuote(p.row.ID) {
		out.Send = append(out.Send, r.rejections(p)...)
	}
	return out.Join(r.over(now, p))
}

func (r *purchases) rejections(p *purchase) []protocol.Message {
	chosen := map[protocol.AgentID]bool{}
	if p.coord != nil && p.coord.State() != reserve.Failed {
		for _, u := range p.row.Units {
			chosen[u.Seller] = true
		}
	}
	to := slices.DeleteFunc(slices.Clone(p.buyer.Bidders()), func(id protocol.AgentID) bool { return chosen[id] })
	var list []protocol.Message
	for chunk := range slices.Chunk(to, protocol.MaxReceivers) {
		list = append(list, protocol.Message{
			Performative: protocol.RejectProposal, Sender: r.cfg.self(), Receivers: chunk,
			Protocol: protocol.ProtocolAuction, Conversation: p.row.ID,
			Body: message.Refused(protocol.CodeCeiling, "another set of offers was chosen"),
		})
	}
	return list
}

package reserve

import (
	"fmt"
	"slices"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// confirm answers the bundle that a buyer has signed. The slots are kept and
// read back before anything is signed; what does not fit is a failure, and
// leaves the hold as it was.
func (p *Participant) confirm(t *turn, m protocol.Message, v contract.Verified) {
	d := p.deals[dealKey{m.Sender, m.Conversation}]
	if d != nil && d.contract != nil && d.contract.sale.Verified.ID == v.ID {
		p.confirmAgain(t, m, d)
		return
	}
	if d != nil && d.pending != nil && d.pending.bundle.ID == v.ID {
		return // repeated; the answer is on its way
	}
	if r, ok := p.confirmable(t, m, d, v); !ok {
		t.send(m.Reply(p.cfg.Self, protocol.Failure, message.Refusal{Reasons: []protocol.Reason{r}}))
		return
	}
	d.pending = &confirmation{bundle: v, m: m, kept: map[string]bool{}}
	for _, u := range p.mine(v.Bundle) {
		t.send(p.queue(message.Keep{ID: u.Reservation, Slot: u.Slot}))
	}
}

// mine are the units of a bundle that name this seller.
func (p *Participant) mine(b protocol.Bundle) []protocol.BundleUnit {
	var list []protocol.BundleUnit
	for _, u := range b.Units {
		if u.Seller == p.cfg.Self {
			list = append(list, u)
		}
	}
	return list
}

// confirmable reports whether a bundle is the contract that was agreed, or why
// not: its signer, its bank, its times, and every unit that names this seller.
func (p *Participant) confirmable(t *turn, m protocol.Message, d *deal, v contract.Verified) (protocol.Reason, bool) {
	b := v.Bundle
	no := func(c protocol.Code, note string) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: note}, false
	}
	switch {
	case !v.Checked():
		return no(protocol.CodeSignature, "the bundle was not verified")
	case b.User != m.Sender || b.Conversation != m.Conversation:
		return no(protocol.CodeForbidden, "the bundle is another buyer's, or of another conversation")
	case d == nil:
		return no(protocol.CodeExpired, "nothing is held in this conversation")
	case d.contract != nil || d.pending != nil:
		return no(protocol.CodeMismatch, "the conversation has another contract")
	case b.RFQ != d.hash:
		return no(protocol.CodeMismatch, "the bundle is about another document")
	case !slices.Contains(p.cfg.Terms, protocol.Terms{Bank: b.Bank, Currency: b.Currency}):
		return no(protocol.CodeNoBank, "the bank or its currency is not one of those offered")
	case !slices.Contains(p.cfg.Modes, b.Mode):
		return no(protocol.CodeMode, "the settlement mode is not one of those offered")
	case !b.SettleBy.After(t.now):
		return no(protocol.CodeSettleBy, "settle-by is over")
	case len(p.mine(b)) == 0:
		return no(protocol.CodeMismatch, "the bundle does not name this seller")
	}
	for _, u := range p.mine(b) {
		if r, ok := agreed(d, b, u); !ok {
			r.Unit = u.Unit
			return r, false
		}
	}
	return protocol.Reason{}, true
}

// agreed reports whether a unit of a bundle is one that is held on these terms.
func agreed(d *deal, b protocol.Bundle, u protocol.BundleUnit) (protocol.Reason, bool) {
	i := slices.IndexFunc(d.claims, func(c *claim) bool { return c.id == u.Reservation })
	if i < 0 || d.claims[i].state != ClaimHeld {
		return protocol.Reason{Code: protocol.CodeExpired, Note: "the reservation is not held"}, false
	}
	c := d.claims[i]
	item := protocol.Item{Unit: u.Unit, Slot: u.Slot, Price: u.Price, Cost: u.Cost}
	switch {
	case !sameItem(item, c.item):
		return protocol.Reason{Code: protocol.CodeMismatch, Note: "slot, price or cost are not those agreed"}, false
	case u.Tariff != c.tariff:
		return protocol.Reason{Code: protocol.CodeMismatch, Note: "the tariff is not that of the document at the agreed price"}, false
	case b.SettleBy.Add(protocol.ClockSkew).After(c.holdUntil):
		return protocol.Reason{Code: protocol.CodeSettleBy, Note: "settle-by is too near the end of the hold"}, false
	case !b.SettleBy.Before(c.item.Slot.Start):
		return protocol.Reason{Code: protocol.CodeSettleBy, Note: "settle-by is not before the start"}, false
	}
	return protocol.Reason{}, true
}

// kept takes the batch system's read-back of one slot of a pending bundle. When
// all are there, the seller signs.
func (p *Participant) kept(t *turn, c *claim, r message.Reserved) {
	d := c.deal
	if d.pending == nil || c.state != ClaimHeld {
		return // given up since
	}
	if !r.OK {
		r.Reason.Unit = c.item.Unit
		p.failVote(t, d, c.offer, nil, "lost by the batch system")
		p.failPending(t, d, r.Reason)
		return
	}
	d.pending.kept[c.id] = true
	if len(d.pending.kept) < len(p.mine(d.pending.bundle.Bundle)) {
		return
	}
	p.countersign(t, d)
}

// failPending answers a confirm that cannot be met any more. This seller never
// countersigns it, so the bank will void it.
func (p *Participant) failPending(t *turn, d *deal, r protocol.Reason) {
	if d.pending == nil {
		return
	}
	t.send(d.pending.m.Reply(p.cfg.Self, protocol.Failure, message.Refusal{Reasons: []protocol.Reason{r}}))
	d.pending = nil
}

// countersign makes the promise. From here on only the bank decides.
func (p *Participant) countersign(t *turn, d *deal) {
	v := d.pending.bundle
	if !v.Bundle.SettleBy.After(t.now) {
		p.failPending(t, d, protocol.Reason{Code: protocol.CodeSettleBy, Unit: protocol.AllUnits, Note: "settle-by passed"})
		return
	}
	sale, err := p.cfg.Notary.Countersign(v, t.now)
	if err != nil {
		p.failPending(t, d, protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "cannot sign"})
		return
	}
	p.becomeCountersigned(t, d, sale)
	t.send(d.pending.m.Reply(p.cfg.Self, protocol.Confirm, message.Countersigned{Sale: sale}))
	d.pending = nil
	p.ask(t, d)
}

func (p *Participant) becomeCountersigned(t *turn, d *deal, sale contract.Sale) {
	d.contract = &promise{sale: sale}
	p.contracts[sale.Verified.ID] = d
	for _, c := range p.promised(d) {
		c.become(t.now, ClaimCountersigned, "")
		c.named = true
	}
	t.save(saleRecord(sale, t.now))
	t.touch(d)
}

// promised are the claims that the deal's contract names, in order of unit.
func (p *Participant) promised(d *deal) []*claim {
	var list []*claim
	for _, u := range p.mine(d.contract.sale.Bundle) {
		c := p.claims[u.Reservation]
		if c == nil || c.deal != d {
			panic(fmt.Sprintf("reserve: contract %s names %s, which is not there", d.contract.sale.Verified.ID, u.Reservation))
		}
		list = append(list, c)
	}
	return list
}

// confirmAgain gives the answer to a confirm that came before.
func (p *Participant) confirmAgain(t *turn, m protocol.Message, d *deal) {
	pr := d.contract
	if pr.outcome == protocol.OutcomeVoid {
		t.send(m.Reply(p.cfg.Self, protocol.Failure, message.Refused(pr.receipt.Reason, "the bank voided the contract")))
		return
	}
	t.send(m.Reply(p.cfg.Self, protocol.Confirm, message.Countersigned{Sale: pr.sale}))
	if pr.receipt != nil {
		t.send(p.informUser(d))
	}
}

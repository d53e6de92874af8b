package reserve

import (
	"slices"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// confirm answers a bundle that the buyer has signed. The batch system confirms each slot before
// the seller signs. A bundle that does not match fails, and leaves the hold as it was.
func (h *holds) confirm(t *turn, m protocol.Message, v contract.Verified) {
	if h.voids.refuse(t, m, v.ID) {
		return
	}
	d := h.deals.byKey[dealKey{m.Sender, m.Conversation}]
	if d != nil && d.contract != nil && d.contract.sale.Verified.ID == v.ID {
		h.confirmAgain(t, m, d)
		return
	}
	if d != nil && d.pending != nil && d.pending.bundle.ID == v.ID {
		d.pending.m, d.pending.confirmed = m, true
		return // the batch system checks the slots
	}
	if d != nil && d.prepared != nil && d.prepared.Verified.ID == v.ID && v.Bundle.SettleBy.After(t.now) {
		h.promise(t, d, *d.prepared) // saving that would take another flush
		h.show(t, m, d)
		return
	}
	if r, ok := h.confirmable(t, m, d, v); !ok {
		t.reply(m, protocol.Failure, message.Refusal{Reasons: []protocol.Reason{r}})
		return
	}
	h.check(t, d, &confirmation{bundle: v, m: m, confirmed: true})
}

// check has the batch system confirm the slots of a bundle.
func (h *holds) check(t *turn, d *deal, c *confirmation) {
	c.secure = map[string]bool{}
	d.pending = c
	for _, u := range unitsOf(t.self, c.bundle.Bundle) {
		t.queue(message.Keep{ID: u.Reservation, Slot: u.Slot})
	}
}

// prepare takes a bundle that its buyer has signed and may still forget. The seller signs
// and saves it, but shows it to nobody before the confirm. The units stay held.
func (h *holds) prepare(t *turn, m protocol.Message, v contract.Verified) {
	d := h.deals.byKey[dealKey{m.Sender, m.Conversation}]
	if _, ok := h.confirmable(t, m, d, v); ok && h.voids.byID[v.ID] == nil {
		h.check(t, d, &confirmation{bundle: v})
	}
}

// unprepare forgets a prepared bundle, under which nothing can be sold any more.
func (d *deal) unprepare(t *turn) {
	if d.prepared != nil {
		t.save(protocol.Record{Table: TableSales, Key: string(d.prepared.Verified.ID)})
		t.touch(d)
		d.prepared = nil
	}
}

// confirmable reports whether a bundle is the contract that was agreed, or why
// not. It checks the signer, the bank, the times and every unit of this seller.
func (h *holds) confirmable(t *turn, m protocol.Message, d *deal, v contract.Verified) (protocol.Reason, bool) {
	b := v.Bundle
	no := func(c protocol.Code, note string) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: note}, false
	}
	terms := protocol.Terms{Bank: b.Bank, Currency: b.Currency}
	switch {
	case !v.Checked():
		return no(protocol.CodeSignature, "the bundle was not verified")
	case b.User != m.Sender || b.Conversation != m.Conversation:
		return no(protocol.CodeForbidden, "the bundle belongs to another buyer or conversation")
	case d == nil:
		return no(protocol.CodeExpired, "this conversation holds nothing")
	case !b.SettleBy.After(t.now):
		return no(protocol.CodeSettleBy, "settle-by has passed")
	case d.signed():
		return no(protocol.CodeMismatch, "the conversation already has another contract")
	case b.RFQ != d.hash:
		return no(protocol.CodeMismatch, "the bundle is for another document")
	case !slices.Contains(h.cfg.Terms, terms):
		return no(protocol.CodeNoBank, "the seller did not offer this bank and currency")
	case d.vouched != terms && d.vouched != protocol.Terms{}:
		return no(protocol.CodeVoucher, "the voucher is of another bank or currency than the bundle")
	case !slices.Contains(h.cfg.Modes, b.Mode):
		return no(protocol.CodeMode, "the seller did not offer this settlement mode")
	case len(unitsOf(t.self, b)) == 0:
		return no(protocol.CodeMismatch, "the bundle does not name this seller")
	case !h.quota.room(d, v.DER):
		return no(protocol.CodeHoldLimit, "the seller keeps too much for this buyer, or for all, that is not bought")
	}
	for _, u := range unitsOf(t.self, b) {
		if r, ok := agreed(d, b, u); !ok {
			r.Unit = u.Unit
			return r, false
		}
	}
	return protocol.Reason{}, true
}

// agreed reports whether the seller holds a unit of a bundle on these terms.
func agreed(d *deal, b protocol.Bundle, u protocol.BundleUnit) (protocol.Reason, bool) {
	i := slices.IndexFunc(d.claims, func(c *claim) bool { return c.id == u.Reservation })
	if i < 0 || d.claims[i].state != ClaimHeld {
		return protocol.Reason{Code: protocol.CodeExpired, Note: "the reservation is not held"}, false
	}
	c := d.claims[i]
	item := protocol.Item{Unit: u.Unit, Slot: u.Slot, Price: u.Price, Cost: u.Cost, Least: u.Tariff.Least}
	switch {
	case !sameItem(item, c.item):
		return protocol.Reason{Code: protocol.CodeMismatch, Note: "slot, price or cost differ from the agreed ones"}, false
	case u.Tariff != c.tariff:
		return protocol.Reason{Code: protocol.CodeMismatch, Note: "the tariff does not match the document at the agreed price"}, false
	case b.SettleBy.Add(protocol.ClockSkew).After(c.holdUntil):
		return protocol.Reason{Code: protocol.CodeSettleBy, Note: "settle-by is too close to the end of the hold"}, false
	case !b.SettleBy.Before(c.item.Slot.Start):
		return protocol.Reason{Code: protocol.CodeSettleBy, Note: "settle-by must be before the start"}, false
	}
	return protocol.Reason{}, true
}

// secured takes the batch system's confirmation of one slot of a pending bundle.
// The seller signs when it has them all.
func (h *holds) secured(t *turn, c *claim, r message.Reserved) {
	d := c.deal
	if d.pending == nil || c.state != ClaimHeld {
		return // given up since
	}
	if !r.OK {
		r.Reason.Unit = c.item.Unit
		h.fail(t, d, c.offer, nil, "lost by the batch system")
		h.failPending(t, d, r.Reason)
		return
	}
	d.pending.secure[c.id] = true
	if len(d.pending.secure) >= len(unitsOf(t.self, d.pending.bundle.Bundle)) {
		h.countersign(t, d)
	}
}

// failPending answers a confirm that has become impossible. Without the seller's
// signature the bank will void the bundle.
func (h *holds) failPending(t *turn, d *deal, r protocol.Reason) {
	if d.pending != nil && d.pending.confirmed {
		t.reply(d.pending.m, protocol.Failure, message.Refusal{Reasons: []protocol.Reason{r}})
	}
	d.pending = nil
}

// countersign signs a bundle. Once it is shown, only the bank decides.
func (h *holds) countersign(t *turn, d *deal) {
	v := d.pending.bundle
	if !v.Bundle.SettleBy.After(t.now) {
		h.failPending(t, d, protocol.Reason{Code: protocol.CodeSettleBy, Unit: protocol.AllUnits, Note: "settle-by has passed"})
		return
	}
	sale, err := h.cfg.Notary.Countersign(v, t.now)
	if err != nil {
		h.failPending(t, d, protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "the seller cannot sign"})
		return
	}
	t.save(saleRecord(sale, t.now))
	t.touch(d)
	c := d.pending
	if d.pending = nil; !c.confirmed {
		d.prepared = &sale
		return
	}
	h.promise(t, d, sale)
	h.show(t, c.m, d)
}

// show gives the user and the bank the seller's copy.
func (h *holds) show(t *turn, m protocol.Message, d *deal) {
	t.reply(m, protocol.Confirm, message.Countersigned{Sale: d.contract.sale})
	d.askBank(t)
}

// promise makes a bundle the contract of its deal.
func (h *holds) promise(t *turn, d *deal, sale contract.Sale) {
	d.prepared = nil
	if err := h.deals.attach(d, sale); err != nil {
		panic("reserve: " + err.Error()) // confirmable has checked the units
	}
	for _, c := range d.contract.claims {
		c.become(t.now, ClaimCountersigned, "")
	}
}

// confirmAgain answers a repeated confirm.
func (h *holds) confirmAgain(t *turn, m protocol.Message, d *deal) {
	pr := d.contract
	if pr.silent {
		pr.silent = false
		h.show(t, m, d)
		return
	}
	t.reply(m, protocol.Confirm, message.Countersigned{Sale: pr.sale})
	if pr.receipt != nil {
		t.send(d.decision(t))
	}
}

package reserve

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// holds decides which accepted offers the seller holds, and which bundles over
// held units it signs (confirm.go).
type holds struct {
	cfg       *ParticipantConfig
	deals     *deals
	quota     *quota
	slots     slots
	strangers *strangers
	voids     *voids
}

// Offered is an accepted offer as the auction knows it.
type Offered struct {
	Offer    protocol.Offer
	Document string // hex SHA-256 of the document that the offer answers
	// Tariffs has the tariff of each metered unit, at the prices of the offer.
	Tariffs map[int]protocol.Tariff
}

// accept answers accept-proposal. An offer that is already held gets the same vote again.
func (h *holds) accept(t *turn, m protocol.Message, a message.Acceptance, offered *Offered) {
	d := h.deals.byKey[dealKey{m.Sender, m.Conversation}]
	if d != nil {
		if vote := d.vote(a.Offer.ID); len(vote) > 0 {
			h.voteAgain(t, m, a, vote)
			return
		}
	}
	until := h.until(t.now, a)
	if r, ok := h.acceptable(t.now, m, d, a, offered, until); !ok {
		t.reply(m, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{r}})
		return
	}
	if d == nil {
		d = h.deals.newDeal(dealKey{m.Sender, m.Conversation}, offered.Document)
	}
	if v := a.Voucher; v != nil {
		d.vouched = protocol.Terms{Bank: v.Note.Bank, Currency: v.Note.Currency}
	}
	h.reserve(t, m, d, a.Offer, until)
	for _, c := range d.vote(a.Offer.ID) {
		c.tariff = offered.Tariffs[c.item.Unit]
	}
}

// until returns the end of a hold: as requested, but within the seller's own bound.
func (h *holds) until(now time.Time, a message.Acceptance) time.Time {
	most := now.Add(h.cfg.Hold)
	if a.HoldUntil.IsZero() {
		return protocol.Earlier(most, now.Add(protocol.DefaultHold))
	}
	return protocol.Earlier(most, a.HoldUntil)
}

// acceptable reports whether the seller can hold an offer, or why not.
func (h *holds) acceptable(now time.Time, m protocol.Message, d *deal, a message.Acceptance, offered *Offered, until time.Time) (protocol.Reason, bool) {
	no := func(c protocol.Code, note string) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: note}, false
	}
	switch {
	case offered == nil:
		return no(protocol.CodeUnknown, "no such offer, or it has expired")
	case !sameOffer(a.Offer, offered.Offer):
		return no(protocol.CodeMismatch, "the accepted terms differ from the offer")
	case !until.After(now):
		return no(protocol.CodeExpired, "hold-until has passed")
	case d != nil && d.hash != offered.Document:
		return no(protocol.CodeMismatch, "the conversation is about another document")
	case d != nil && d.signed():
		return no(protocol.CodeMismatch, "the conversation already has a contract")
	}
	for _, it := range a.Offer.Items {
		if !it.Slot.Start.After(now) {
			return no(protocol.CodeExpired, "the slot has begun")
		}
		if d != nil && d.unit(it.Unit) != nil {
			return protocol.Reason{Code: protocol.CodeMismatch, Unit: it.Unit, Note: "the unit is already held"}, false
		}
	}
	return h.quota.admit(now, until, m.Sender, a.Offer, h.vouched(m, d, a, until), len(h.deals.claims))
}

// sameOffer compares the binding parts of two offers, times as instants.
func sameOffer(a, b protocol.Offer) bool {
	return a.ID == b.ID && a.Cost == b.Cost && slices.EqualFunc(a.Items, b.Items, sameItem)
}

func sameItem(a, b protocol.Item) bool {
	return a.Unit == b.Unit && a.Price == b.Price && a.Cost == b.Cost && a.Least == b.Least && sameSlot(a.Slot, b.Slot)
}

func sameSlot(a, b protocol.Slot) bool {
	return a.Cores == b.Cores && a.Nodes == b.Nodes && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}

// reserve writes the offer's slots into the book and requests them from the batch
// system, unless the machine has become too busy since the offer.
func (h *holds) reserve(t *turn, m protocol.Message, d *deal, o protocol.Offer, until time.Time) {
	t.touch(d)
	for _, it := range o.Items {
		if free := h.slots.book.Room(it.Slot); free < it.Slot.Cores {
			h.fail(t, d, o.ID, nil, "busy")
			t.reply(m, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{
				{Code: protocol.CodeBusy, Unit: it.Unit, Free: free, Note: "the cores were taken since the offer"}}})
			return
		}
		c := &claim{
			id: h.deals.nextID(d.dealKey, it.Unit), offer: o.ID, item: it, since: t.now, holdUntil: until, replyWith: m.ReplyWith,
		}
		c.become(t.now, ClaimReserving, "")
		h.deals.add(d, c)
		h.slots.book.Add(c.id, it.Slot)
		h.quota.add(c)
	}
	for _, c := range d.vote(o.ID) {
		t.queue(message.Reserve{ID: c.id, Slot: c.item.Slot})
	}
}

// voteAgain answers a repeated accept-proposal.
func (h *holds) voteAgain(t *turn, m protocol.Message, a message.Acceptance, vote []*claim) {
	items := make([]protocol.Item, len(vote))
	for i, c := range vote {
		items[i] = c.item
		switch c.state {
		case ClaimReserving:
			return // the batch system's answer will bring the vote
		case ClaimFreed, ClaimCancelled, ClaimBroken:
			t.reply(m, protocol.Refuse, message.Refused(protocol.CodeExpired, "the hold has ended: "+c.why))
			return
		}
	}
	if !slices.EqualFunc(items, a.Offer.Items, sameItem) {
		t.reply(m, protocol.Refuse, message.Refused(protocol.CodeMismatch, "the accepted terms differ from the offer"))
		return
	}
	h.agree(t, vote)
}

// agree sends the vote: the seller's yes to an offer.
func (h *holds) agree(t *turn, vote []*claim) {
	first := vote[0]
	body := message.Vote{Offer: first.offer, HoldUntil: first.holdUntil}
	for _, c := range vote {
		body.Reservations = append(body.Reservations, c.reservation())
	}
	t.send(first.answer(t, protocol.Agree, body))
}

// answer replies to the accept-proposal that made a claim.
func (c *claim) answer(t *turn, perf protocol.Performative, body protocol.Body) protocol.Message {
	m := t.message(c.deal.user, perf, protocol.ProtocolCommit, c.deal.conversation, body)
	m.InReplyTo = c.replyWith
	return m
}

// granted votes once the batch system has reserved every unit of the offer. If it
// refuses one, the whole offer fails.
func (h *holds) granted(t *turn, c *claim, r message.Reserved) {
	d := c.deal
	if !r.OK {
		r.Reason.Unit = c.item.Unit
		h.fail(t, d, c.offer, &r.Reason, "refused by the batch system")
		return
	}
	c.reserved, c.granted, c.batch = true, t.now, r.Batch
	vote := d.vote(c.offer)
	if slices.ContainsFunc(vote, func(c *claim) bool { return !c.reserved }) {
		return
	}
	for _, c := range vote {
		h.quota.answered(c)
		c.become(t.now, ClaimHeld, "")
	}
	t.touch(d)
	h.agree(t, vote)
}

// fail frees the reserved and held units of an offer. Given a reason, it answers
// the accept-proposal if that is still open.
func (h *holds) fail(t *turn, d *deal, offer string, r *protocol.Reason, why string) {
	var open *claim
	for _, c := range d.vote(offer) {
		if c.state == ClaimReserving {
			open = c
		}
		if c.state == ClaimReserving || c.state == ClaimHeld {
			h.free(t, c, why)
		}
	}
	if open != nil && r != nil {
		t.send(open.answer(t, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{*r}}))
	}
}

// free ends an unsold claim and gives its cores back.
func (h *holds) free(t *turn, c *claim, why string) {
	h.quota.answered(c)
	h.quota.remove(c)
	c.become(t.now, ClaimFreed, why)
	c.deal.unprepare(t)
	h.slots.release(t, c)
}

// lost ends the hold of a slot that the batch system has lost.
func (h *holds) lost(t *turn, c *claim) {
	const why = "lost by the batch system"
	h.fail(t, c.deal, c.offer, nil, why)
	h.failPending(t, c.deal, protocol.Reason{Code: protocol.CodeUnavailable, Unit: c.item.Unit, Note: why})
}

// cancel frees held units at the buyer's request, except those that may have been sold since an
// older journal was written: a buyer cancels any vote that reaches it after its purchase.
func (h *holds) cancel(t *turn, m protocol.Message, body message.Cancellation) {
	d := h.deals.byKey[dealKey{m.Sender, m.Conversation}]
	if d == nil {
		return // the buyer holds nothing here
	}
	for _, c := range d.claims {
		if c.state == ClaimHeld && !c.unsure && slices.Contains(body.Reservations, c.id) {
			h.quota.charge(t, c)
			h.free(t, c, "cancelled by the buyer")
			h.failPending(t, d, protocol.Reason{Code: protocol.CodeExpired, Unit: c.item.Unit, Note: "cancelled"})
		}
	}
}

// expire ends holds at their time, even while the batch system checks them for a
// contract: nothing has been signed yet.
func (h *holds) expire(t *turn, d *deal) {
	for _, c := range d.claims {
		if (c.state != ClaimReserving && c.state != ClaimHeld) || c.unsure || t.now.Before(c.holdUntil) {
			continue
		}
		for _, lapsed := range d.vote(c.offer) {
			if lapsed.state == ClaimHeld {
				h.quota.charge(t, lapsed)
			}
		}
		late := protocol.Reason{Code: protocol.CodeUnavailable, Unit: c.item.Unit, Note: "the batch system did not answer in time"}
		h.fail(t, d, c.offer, &late, "hold-until passed")
		h.failPending(t, d, protocol.Reason{Code: protocol.CodeExpired, Unit: c.item.Unit, Note: "hold-until passed"})
	}
	h.sweep(t, d)
}

// sweep forgets freed claims once they are released and the buyer has no reason to
// repeat itself. Claims that a contract names are archived with it instead.
func (h *holds) sweep(t *turn, d *deal) {
	d.claims = slices.DeleteFunc(d.claims, func(c *claim) bool {
		over := c.state == ClaimFreed && !c.releasing && !t.now.Before(c.holdUntil) && !c.named
		if over {
			delete(h.deals.claims, c.id)
			h.strangers.sweep(c.id)
			t.touch(d)
		}
		return over
	})
}

package reserve

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// refunds gives money back through the bank: for units that a buyer cancels, and
// for units that the batch system lost.
type refunds struct {
	cfg   *ParticipantConfig
	deals *deals
	quota *quota
	slots slots
}

// cancel answers a buyer's request to take one settled unit back. The seller frees
// the slot only after the bank's receipt for the refund.
func (rs *refunds) cancel(t *turn, m protocol.Message, body message.UnitCancellation) {
	c, r := rs.cancellable(t, m, body)
	if c == nil {
		answer := protocol.Refuse
		if r.Code == protocol.CodeUnavailable {
			answer = protocol.Failure // the buyer may ask again
		}
		t.reply(m, answer, message.Refusal{Reasons: []protocol.Reason{r}})
		return
	}
	pr := c.deal.contract
	agree := m.Reply(t.self, protocol.Agree, message.Decision{Contract: pr.sale.Verified.ID, Outcome: pr.outcome, Receipt: pr.receipt})
	switch {
	case c.state == ClaimCancelled:
		t.send(agree, c.cancelled(t, &m))
	case c.refund != nil:
		c.refund.request = &m // repeated; the bank's answer is due
		t.send(agree)
	case !rs.sign(t, c, fee(c.item.Cost, rs.cfg.Cancellation.FeePerMille)):
		t.reply(m, protocol.Refuse, message.Refused(protocol.CodeUnavailable, "the seller cannot sign"))
	default:
		c.refund.request = &m
		t.save(protocol.Record{Table: TableCancels, Key: fmt.Sprintf("%s %d", body.Signed.Note.Contract, body.Signed.Note.Unit), Value: body.Signed.DER})
		t.send(agree)
		rs.send(t, c)
	}
}

// cancellable finds the unit that a buyer may return, or the reason against it.
func (rs *refunds) cancellable(t *turn, m protocol.Message, body message.UnitCancellation) (*claim, protocol.Reason) {
	note := body.Signed.Note
	no := func(code protocol.Code, why string) (*claim, protocol.Reason) {
		return nil, protocol.Reason{Code: code, Unit: note.Unit, Note: why}
	}
	d := rs.deals.contracts[note.Contract]
	switch {
	case !body.Signed.Checked():
		return no(protocol.CodeSignature, "the request was not verified")
	case d == nil:
		return no(protocol.CodeUnknown, "no such contract here")
	case note.User != m.Sender || d.user != m.Sender:
		return no(protocol.CodeForbidden, "the contract belongs to another buyer")
	}
	i := slices.IndexFunc(d.contract.claims, func(c *claim) bool { return c.item.Unit == note.Unit })
	if i < 0 {
		return no(protocol.CodeUnknown, "this seller has no such unit in the contract")
	}
	c := d.contract.claims[i]
	switch {
	case c.state == ClaimCancelled, c.state == ClaimSold && c.refund != nil:
		return c, protocol.Reason{} // already agreed
	case c.state == ClaimCountersigned:
		return no(protocol.CodeUnavailable, "this seller does not have the bank's decision yet")
	case c.state != ClaimSold:
		return no(protocol.CodeMismatch, "the unit is "+string(c.state))
	case !rs.cfg.Cancellation.Allowed:
		return no(protocol.CodeForbidden, "this site does not accept cancellations")
	case t.now.After(c.item.Slot.Start):
		return no(protocol.CodeExpired, "the slot began at "+c.item.Slot.Start.UTC().Format(time.RFC3339))
	case t.now.Add(rs.cfg.Cancellation.Before).After(c.item.Slot.Start):
		return no(protocol.CodeExpired, "too late: cancel at least "+rs.cfg.Cancellation.Before.String()+" before the start")
	}
	return c, protocol.Reason{}
}

// fee is a share of a cost, rounded half away from zero.
func fee(cost protocol.Credits, perMille int) protocol.Credits {
	hi, lo := bits.Mul64(uint64(cost), uint64(perMille))
	lo, carry := bits.Add64(lo, 500, 0)
	q, _ := bits.Div64(hi+carry, lo, 1000)
	return protocol.Credits(q)
}

// sign signs a refund of the cost less the seller's fee.
func (rs *refunds) sign(t *turn, c *claim, fee protocol.Credits) bool {
	note := contract.Refund{
		Version: contract.NoteVersion, Contract: c.deal.contract.sale.Verified.ID, Unit: c.item.Unit,
		Seller: t.self, Amount: c.item.Cost - fee, Fee: fee,
	}
	signed, err := rs.cfg.Notary.Refund(note, t.now)
	if err != nil {
		return false
	}
	c.refund, c.retries = &refundDue{signed: signed}, 0
	t.touch(c.deal)
	return true
}

// signAgain replaces a refund of a later time, which a bank does not take.
func (rs *refunds) signAgain(t *turn, c *claim) {
	if old := c.refund; old != nil && !old.paid && rs.sign(t, c, old.signed.Note.Fee) {
		c.refund.request = old.request
	}
}

// broken ends a sold unit that the batch system has lost. The seller owes the
// buyer its whole cost, and releases any remains of the reservation.
func (rs *refunds) broken(t *turn, c *claim) {
	c.become(t.now, ClaimBroken, "lost by the batch system")
	rs.slots.release(t, c)
	rs.request(t, c)
}

// request asks the bank for the refund of a claim, for the whole price if nothing was signed yet.
// If signing fails, the seller still owes the refund and tries again.
func (rs *refunds) request(t *turn, c *claim) {
	if c.refund == nil && !rs.sign(t, c, 0) {
		t.touch(c.deal)
		t.backOff(c)
		return
	}
	rs.send(t, c)
}

// send shows the bank the signed refund.
func (rs *refunds) send(t *turn, c *claim) {
	sale := c.deal.contract.sale
	t.ask(sale.Bundle.Bank, protocol.Request, c.deal.conversation, refundTag(c),
		message.RefundRequest{Bundle: sale.Verified, Signed: c.refund.signed})
	t.backOff(c)
}

func refundTag(c *claim) string { return "refund-" + strconv.Itoa(c.item.Unit) }

// paid finds the refunds on a receipt of the contract's own bank.
func (rs *refunds) paid(t *turn, d *deal, r *contract.VerifiedReceipt) {
	for _, c := range d.contract.claims {
		done := slices.ContainsFunc(r.Refunds, func(f protocol.Refund) bool { return f.Unit == c.item.Unit })
		if done && c.refund == nil && c.state == ClaimSold { // the journal is older than the refund
			d.keepReceipt(t, r)
			c.become(t.now, ClaimCancelled, "refunded before the journal was restored")
			rs.slots.release(t, c)
			continue
		}
		if !done || c.refund == nil || c.refund.paid {
			continue
		}
		c.refund.paid = true
		if !c.releasing {
			c.retryAt, c.retries = time.Time{}, 0
		}
		d.keepReceipt(t, r)
		request := c.refund.request
		if c.state == ClaimSold {
			rs.quota.returned(t, c)
			c.become(t.now, ClaimCancelled, "cancelled by the buyer")
			rs.slots.release(t, c)
		}
		t.send(c.cancelled(t, request))
	}
}

// cancelled informs the buyer that the bank has paid the refund.
func (c *claim) cancelled(t *turn, request *protocol.Message) protocol.Message {
	m := c.deal.decision(t)
	if request != nil {
		m.Protocol, m.Conversation, m.InReplyTo = request.Protocol, request.Conversation, request.ReplyWith
	}
	return m
}

// refused takes a bank's refusal of a refund: the cancellation fails and the unit
// stays sold. A refund for a broken unit stays due, and the seller asks again. A
// bank's refusal of a copy decides nothing.
func (rs *refunds) refused(t *turn, m protocol.Message, body message.Refusal) {
	if m.Performative != protocol.Refuse {
		return
	}
	for _, d := range rs.deals.order {
		if d.contract == nil || d.conversation != m.Conversation || d.contract.sale.Bundle.Bank != m.Sender {
			continue
		}
		t.see(d)
		for _, c := range d.contract.claims {
			if c.refund == nil || c.refund.paid || m.InReplyTo != refundTag(c) || c.state != ClaimSold {
				continue
			}
			if c.refund.request != nil {
				t.reply(*c.refund.request, protocol.Refuse, body)
			}
			c.refund, c.retryAt, c.retries = nil, time.Time{}, 0
			t.touch(d)
		}
	}
}

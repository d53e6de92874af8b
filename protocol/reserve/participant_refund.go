package reserve

import (
	"math/bits"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// cancelUnit answers a buyer's request to take one settled unit back. It is
// agreed to if the site's policy allows it; the slot is freed only after the
// bank's receipt of the refund.
func (p *Participant) cancelUnit(t *turn, m protocol.Message, body message.UnitCancellation) {
	c, r := p.cancellable(t, m, body)
	if c == nil {
		answer := protocol.Refuse
		if r.Code == protocol.CodeUnavailable {
			answer = protocol.Failure // not now: the buyer asks again
		}
		t.send(m.Reply(p.cfg.Self, answer, message.Refusal{Reasons: []protocol.Reason{r}}))
		return
	}
	pr := c.deal.contract
	agree := m.Reply(p.cfg.Self, protocol.Agree, message.Decision{Contract: pr.sale.Verified.ID, Outcome: pr.outcome, Receipt: pr.receipt})
	switch {
	case c.state == ClaimCancelled:
		t.send(agree, p.informCancelled(c, &m))
	case c.refund != nil:
		c.refund.request = &m // repeated; the bank is being asked
		t.send(agree)
	case !p.signRefund(t, c, fee(c.item.Cost, p.cfg.Cancellation.FeePerMille)):
		t.send(m.Reply(p.cfg.Self, protocol.Refuse, message.Refused(protocol.CodeUnavailable, "cannot sign")))
	default:
		c.refund.request = &m
		t.save(cancelRecord(body.Signed))
		t.send(agree)
		p.sendRefund(t, c)
	}
}

// cancellable finds the unit that a buyer may give back, or says why not.
func (p *Participant) cancellable(t *turn, m protocol.Message, body message.UnitCancellation) (*claim, protocol.Reason) {
	note := body.Signed.Note
	no := func(code protocol.Code, why string) (*claim, protocol.Reason) {
		return nil, protocol.Reason{Code: code, Unit: note.Unit, Note: why}
	}
	d := p.contracts[note.Contract]
	switch {
	case !body.Signed.Checked():
		return no(protocol.CodeSignature, "the request was not verified")
	case d == nil:
		return no(protocol.CodeUnknown, "no such contract here")
	case note.User != m.Sender || d.user != m.Sender:
		return no(protocol.CodeForbidden, "the contract is another buyer's")
	}
	i := slices.IndexFunc(p.promised(d), func(c *claim) bool { return c.item.Unit == note.Unit })
	if i < 0 {
		return no(protocol.CodeUnknown, "the contract has no such unit of this seller")
	}
	c := p.promised(d)[i]
	switch {
	case c.state == ClaimCancelled, c.state == ClaimSold && c.refund != nil:
		return c, protocol.Reason{} // agreed to before
	case c.state == ClaimCountersigned:
		return no(protocol.CodeUnavailable, "the bank's decision is not known here yet")
	case c.state != ClaimSold:
		return no(protocol.CodeMismatch, "the unit is "+string(c.state))
	case !p.cfg.Cancellation.Allowed:
		return no(protocol.CodeForbidden, "this site takes nothing back")
	case t.now.Add(p.cfg.Cancellation.Before).After(c.item.Slot.Start):
		return no(protocol.CodeExpired, "too late: at least "+p.cfg.Cancellation.Before.String()+" before the start")
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

// signRefund signs what is due to the buyer, less what the seller keeps.
func (p *Participant) signRefund(t *turn, c *claim, kept protocol.Credits) bool {
	note := contract.Refund{
		Version: contract.NoteVersion, Contract: c.deal.contract.sale.Verified.ID, Unit: c.item.Unit,
		Seller: p.cfg.Self, Amount: c.item.Cost - kept, Fee: kept,
	}
	signed, err := p.cfg.Notary.Refund(note, t.now)
	if err != nil {
		return false
	}
	c.refund, c.retries = &refundDue{signed: signed}, 0
	t.touch(c.deal)
	return true
}

// askRefund asks the bank to give back what is due for a claim: the whole price,
// if the unit is broken and nothing was signed yet. What cannot be signed now is
// owed all the same, and tried again.
func (p *Participant) askRefund(t *turn, c *claim) {
	if c.refund == nil && !p.signRefund(t, c, 0) {
		t.touch(c.deal)
		t.backOff(c)
		return
	}
	p.sendRefund(t, c)
}

// sendRefund asks the bank to move what was signed.
func (p *Participant) sendRefund(t *turn, c *claim) {
	m := p.message(c.deal.contract.sale.Bundle.Bank, protocol.Request, protocol.ProtocolRequest, c.deal.conversation,
		message.RefundRequest{Bundle: c.deal.contract.sale.Verified, Signed: c.refund.signed})
	m.ReplyWith = refundTag(c)
	t.send(m)
	t.backOff(c)
}

// refundTag is the reply-with of a claim's refund request.
func refundTag(c *claim) string { return "refund-" + strconv.Itoa(c.item.Unit) }

// refunded looks for due refunds on a receipt of the contract's own bank.
func (p *Participant) refunded(t *turn, d *deal, r *contract.VerifiedReceipt) {
	for _, c := range p.promised(d) {
		done := slices.ContainsFunc(r.Refunds, func(f protocol.Refund) bool { return f.Unit == c.item.Unit })
		if done && c.refund == nil && c.state == ClaimSold {
			p.givenBack(t, d, c, r)
			continue
		}
		if !done || c.refund == nil || c.refund.paid {
			continue
		}
		c.refund.paid = true
		if !c.releasing {
			c.retryAt, c.retries = time.Time{}, 0
		}
		d.contract.receipt = r
		t.save(receiptRecord(*r))
		t.touch(d)
		request := c.refund.request
		if c.state == ClaimSold {
			c.become(t.now, ClaimCancelled, "cancelled by the buyer")
			p.release(t, c)
		}
		t.send(p.informCancelled(c, request))
	}
}

// givenBack takes a refund that the journal knows nothing of: it is older.
func (p *Participant) givenBack(t *turn, d *deal, c *claim, r *contract.VerifiedReceipt) {
	d.contract.receipt = r
	t.save(receiptRecord(*r))
	c.become(t.now, ClaimCancelled, "given back before the journal was restored")
	p.release(t, c)
}

// informCancelled tells the buyer that the bank has given the money back.
func (p *Participant) informCancelled(c *claim, request *protocol.Message) protocol.Message {
	m := p.informUser(c.deal)
	if request != nil {
		m.Protocol, m.Conversation, m.InReplyTo = request.Protocol, request.Conversation, request.ReplyWith
	}
	return m
}

// refundRefused ends a cancellation that the bank does not carry out: the unit
// stays sold. What is owed for a broken unit stays owed and is asked for again.
func (p *Participant) refundRefused(t *turn, c *claim, body message.Refusal) {
	if c.state != ClaimSold {
		return
	}
	if c.refund.request != nil {
		t.send(c.refund.request.Reply(p.cfg.Self, protocol.Refuse, body))
	}
	c.refund, c.retryAt, c.retries = nil, time.Time{}, 0
	t.touch(c.deal)
}

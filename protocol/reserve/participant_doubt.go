package reserve

import (
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A seller that has countersigned is in doubt until it holds a decision signed
// by the bank named in the bundle.

// ask shows the bank the seller's copy; once the bank has it, it asks for the
// outcome; if a slot was lost, it asks for void.
func (p *Participant) ask(t *turn, d *deal) {
	t.see(d)
	pr := d.contract
	bank, id := pr.sale.Bundle.Bank, pr.sale.Verified.ID
	var m protocol.Message
	switch {
	case pr.lost:
		m = p.message(bank, protocol.Request, protocol.ProtocolRequest, d.conversation, message.Annulment{Bundle: pr.sale.Verified})
	case pr.gathered:
		m = p.message(bank, protocol.QueryRef, protocol.ProtocolRequest, d.conversation, message.OutcomeQuery{Contract: id})
	default:
		m = p.message(bank, protocol.Request, protocol.ProtocolRequest, d.conversation, message.Settlement{Sale: pr.sale})
	}
	m.ReplyWith = settleTag
	t.send(m)
	pr.retryAt = t.now.Add(backOff(pr.retries))
	pr.retries++
}

const settleTag = "settle"

// askBank asks again when it is time.
func (p *Participant) askBank(t *turn, d *deal) {
	if pr := d.contract; pr != nil && pr.outcome == "" && !t.now.Before(pr.retryAt) {
		p.ask(t, d)
	}
}

// decide takes what somebody says of a contract. Only a receipt signed by its
// own bank decides anything, whoever brings it.
func (p *Participant) decide(t *turn, m protocol.Message, body message.Decision) {
	d := p.contracts[body.Contract]
	if d == nil {
		return // put away since, or never ours
	}
	t.see(d)
	if body.Receipt == nil {
		p.undecided(t, m, d, body)
		return
	}
	if !signedByBank(d.contract, *body.Receipt) {
		return // a receipt, but not for this contract by its bank
	}
	switch {
	case d.contract.outcome == "":
		p.becomeDecided(t, d, body.Receipt)
	case d.contract.outcome != body.Receipt.Outcome:
		p.contradicted(t, body.Receipt)
	}
	p.refunded(t, d, body.Receipt)
	p.ended(t, m, d, body.Receipt)
}

func signedByBank(pr *promise, r contract.VerifiedReceipt) bool {
	bank := pr.sale.Bundle.Bank
	return r.Checked() && r.Contract == pr.sale.Verified.ID && r.Bank == bank && r.Signer.ID == bank
}

// undecided takes an unknown or gathering from the bank itself. Unknown decides
// nothing: the bank is shown the copy again.
func (p *Participant) undecided(t *turn, m protocol.Message, d *deal, body message.Decision) {
	pr := d.contract
	if m.Sender != pr.sale.Bundle.Bank || pr.outcome != "" {
		return // hearsay, or decided
	}
	had := pr.gathered
	pr.gathered = body.Outcome == protocol.OutcomeGathering
	if had && !pr.gathered {
		p.ask(t, d)
	}
}

func (p *Participant) becomeDecided(t *turn, d *deal, r *contract.VerifiedReceipt) {
	pr := d.contract
	pr.outcome, pr.receipt = r.Outcome, r
	t.save(receiptRecord(*r))
	t.touch(d)
	for _, c := range p.promised(d) {
		if c.state != ClaimCountersigned {
			continue // over before the journal was lost
		}
		if r.Outcome == protocol.OutcomeSettled {
			p.bought(t.now, c)
			c.become(t.now, ClaimSold, "")
		} else {
			p.free(t, c, "the bank voided the contract")
		}
	}
	t.send(p.informUser(d))
	if pr.lost && r.Outcome == protocol.OutcomeSettled {
		for _, c := range p.promised(d) {
			if c.state == ClaimSold {
				p.remake(t, c)
			}
		}
	}
}

// informUser passes the bank's receipt on.
func (p *Participant) informUser(d *deal) protocol.Message {
	pr := d.contract
	return p.message(d.user, protocol.Inform, protocol.ProtocolCommit, d.conversation,
		message.Decision{Contract: pr.sale.Verified.ID, Outcome: pr.outcome, Reason: pr.receipt.Reason, Receipt: pr.receipt})
}

// contradicted keeps a second decision that differs from the first: the two
// convict the bank. What was done stands.
func (p *Participant) contradicted(t *turn, r *contract.VerifiedReceipt) {
	t.save(contraryRecord(*r))
}

// refused takes a refusal by the bank: of a refund, which ends a cancellation.
// Its refusal of a copy decides nothing.
func (p *Participant) refused(t *turn, m protocol.Message, body message.Refusal) {
	if m.Performative != protocol.Refuse {
		return
	}
	for _, d := range p.order {
		if d.contract == nil || d.conversation != m.Conversation || d.contract.sale.Bundle.Bank != m.Sender {
			continue // another's
		}
		t.see(d)
		for _, c := range p.promised(d) {
			if c.refund != nil && !c.refund.paid && m.InReplyTo == refundTag(c) {
				p.refundRefused(t, c, body)
			}
		}
	}
}

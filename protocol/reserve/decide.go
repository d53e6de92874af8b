package reserve

import (
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A seller that has countersigned is in doubt until it holds a decision signed by
// the bank that the bundle names.

// askBank shows the bank the seller's copy. Once the bank has it, or if the user has perhaps
// not confirmed it, the seller asks for the outcome; if a slot was lost, or settle-by has
// passed without a confirm, it asks for void.
func (d *deal) askBank(t *turn) {
	t.see(d)
	pr := d.contract
	bank := pr.sale.Bundle.Bank
	switch {
	case pr.lost || pr.silent && t.now.After(pr.sale.Bundle.SettleBy.Add(protocol.ClockSkew)):
		t.ask(bank, protocol.Request, d.conversation, settleTag, message.Annulment{Bundle: pr.sale.Verified})
	case pr.gathered || pr.silent:
		t.ask(bank, protocol.QueryRef, d.conversation, settleTag, message.OutcomeQuery{Contract: pr.sale.Verified.ID})
	default:
		t.ask(bank, protocol.Request, d.conversation, settleTag, message.Settlement{Sale: pr.sale})
	}
	pr.retryAt = t.now.Add(backOff(pr.retries))
	pr.retries++
}

const settleTag = "settle"

func (d *deal) inDoubt() bool { return d.contract != nil && d.contract.outcome == "" }

// retryBank asks again when it is time.
func (d *deal) retryBank(t *turn) {
	if d.inDoubt() && !t.now.Before(d.contract.retryAt) {
		d.askBank(t)
	}
}

// decision passes the bank's receipt on to the user.
func (d *deal) decision(t *turn) protocol.Message {
	pr := d.contract
	return t.message(d.user, protocol.Inform, protocol.ProtocolCommit, d.conversation,
		message.Decision{Contract: pr.sale.Verified.ID, Outcome: pr.outcome, Reason: pr.receipt.Reason, Receipt: pr.receipt})
}

// keepReceipt replaces the contract's receipt by a later one.
func (d *deal) keepReceipt(t *turn, r *contract.VerifiedReceipt) {
	d.contract.receipt = r
	t.save(receiptRecord(TableReceipts, *r))
	t.touch(d)
}

// decide takes a statement about a contract, from anybody. Only a receipt signed
// by the contract's own bank decides anything.
func (p *Participant) decide(t *turn, m protocol.Message, body message.Decision) {
	d := p.deals.contracts[body.Contract]
	if d == nil {
		p.voids.contradicted(t, body)
		return // void or archived since, or never ours
	}
	t.see(d)
	if body.Receipt == nil {
		d.undecided(t, m, body)
		return
	}
	if !signedBy(d.contract.sale.Bundle.Bank, body.Contract, *body.Receipt) {
		return // a receipt, but not for this contract by its bank
	}
	switch {
	case d.contract.outcome == "":
		p.becomeDecided(t, d, body.Receipt)
	case d.contract.outcome != body.Receipt.Outcome:
		// Two contradicting decisions convict the bank. The first stands.
		t.save(receiptRecord(TableContrary, *body.Receipt))
	}
	if d.contract == nil {
		return // void
	}
	p.refunds.paid(t, d, body.Receipt)
	p.jobs.ended(t, m, d, body.Receipt)
}

func signedBy(bank protocol.AgentID, id protocol.ContractID, r contract.VerifiedReceipt) bool {
	return r.Checked() && r.Contract == id && r.Bank == bank && r.Signer.ID == bank
}

// undecided takes "unknown" or "gathering" from the bank itself. Unknown decides
// nothing: the seller shows the bank its copy again.
func (d *deal) undecided(t *turn, m protocol.Message, body message.Decision) {
	pr := d.contract
	if m.Sender != pr.sale.Bundle.Bank || pr.outcome != "" {
		return // hearsay, or decided
	}
	had := pr.gathered
	pr.gathered = body.Outcome == protocol.OutcomeGathering
	if had && !pr.gathered {
		d.askBank(t)
	}
}

func (p *Participant) becomeDecided(t *turn, d *deal, r *contract.VerifiedReceipt) {
	pr := d.contract
	pr.outcome, pr.receipt, pr.silent = r.Outcome, r, false
	for _, c := range pr.claims {
		if c.state != ClaimCountersigned {
			continue // over before the journal was lost
		}
		if r.Outcome == protocol.OutcomeSettled {
			p.quota.bought(t, c)
			c.become(t.now, ClaimSold, "")
		} else {
			if !pr.lost {
				p.quota.charge(t, c)
			}
			p.holds.free(t, c, "the bank voided the contract")
		}
	}
	t.send(d.decision(t))
	if r.Outcome == protocol.OutcomeVoid {
		p.becomeVoid(t, d)
		return
	}
	d.keepReceipt(t, r)
	if pr.lost {
		for _, c := range pr.claims {
			if c.state == ClaimSold {
				p.slots.remake(t, c)
			}
		}
	}
}

package reserve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// becomeConfirming signs the bundle, saves it, and sends it to every seller.
func (c *Coordinator) becomeConfirming(now time.Time) protocol.Output {
	if c.state != Voting {
		panic(fmt.Sprintf("reserve: %s cannot confirm", c.state))
	}
	bundle, err := c.bundleAt(now)
	if err == nil {
		c.bundle, err = c.cfg.Sign(bundle, now)
	}
	if err != nil {
		c.keep([]protocol.Reason{{Code: protocol.CodeExpired, Unit: protocol.AllUnits, Note: err.Error()}})
		return c.becomeFailed(now)
	}
	c.state = Confirming
	c.votedAt = now
	c.sellers = c.bundle.Sellers()
	c.scheduleRetry(now)
	out := protocol.Output{Save: []protocol.Record{c.save()}}
	for _, id := range c.sellers {
		out.Send = append(out.Send, c.confirmation(id))
	}
	return out
}

// bundleAt draws up the contract. It must be settled before the first hold ends
// by the agreed skew, and before the first slot starts.
func (c *Coordinator) bundleAt(now time.Time) (protocol.Bundle, error) {
	nonce := sha256.Sum256([]byte("nonce\x00" + string(c.cfg.Self) + "\x00" + c.cfg.Conversation))
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: c.cfg.Conversation, User: c.cfg.Self,
		Bank: c.cfg.Terms.Bank, Currency: c.cfg.Terms.Currency, Mode: c.cfg.Mode, RFQ: c.cfg.RFQ,
		Nonce: hex.EncodeToString(nonce[:16]), SettleBy: now.Add(c.cfg.Settle),
	}
	for _, bal := range c.ballots {
		b.SettleBy = protocol.Earlier(b.SettleBy, bal.vote.HoldUntil.Add(-protocol.ClockSkew))
		for _, it := range bal.bid.Offer.Items {
			b.SettleBy = protocol.Earlier(b.SettleBy, it.Slot.Start.Add(-time.Millisecond))
			b.Units = append(b.Units, protocol.BundleUnit{
				Unit: it.Unit, Seller: bal.bid.Seller, Reservation: reservationOf(bal.vote, it.Unit),
				Slot: it.Slot, Price: it.Price, Cost: it.Cost, Tariff: c.tariff(it),
			})
			var err error
			if b.Total, err = b.Total.Add(it.Cost); err != nil {
				return b, err
			}
		}
	}
	sort.Slice(b.Units, func(i, j int) bool { return b.Units[i].Unit < b.Units[j].Unit })
	if !b.SettleBy.After(now) {
		return b, fmt.Errorf("no time left to settle: a hold or a slot is at %s", b.SettleBy.Format(time.RFC3339Nano))
	}
	return b, nil
}

// tariff is a unit's, if the bundle is metered.
func (c *Coordinator) tariff(it protocol.Item) protocol.Tariff {
	if c.cfg.Tariff == nil || c.cfg.Mode != protocol.ModeMetered {
		return protocol.Tariff{}
	}
	return c.cfg.Tariff(it)
}

func reservationOf(v *message.Vote, unit int) string {
	for _, r := range v.Reservations {
		if r.Unit == unit {
			return r.ID
		}
	}
	return ""
}

func (c *Coordinator) confirmation(seller protocol.AgentID) protocol.Message {
	m := c.message(seller, protocol.Confirm, protocol.ProtocolCommit, message.Confirmation{Bundle: c.bundle})
	m.ReplyWith = "confirm"
	m.ReplyBy = c.bundle.Bundle.SettleBy
	return m
}

// refusedConfirm asks the bank to void: a named seller will never countersign. One to
// which the bundle makes no sense, as to another version, says not-understood.
func (c *Coordinator) refusedConfirm(m protocol.Message, reasons []protocol.Reason) protocol.Output {
	if m.Performative == protocol.RejectProposal || m.InReplyTo != "confirm" || m.Sender.Local() {
		return protocol.Output{}
	}
	named := false
	for _, id := range c.sellers {
		named = named || id == m.Sender
	}
	if !named || c.receipt != nil {
		return protocol.Output{} // not one of the sellers, or the bank has decided
	}
	c.keep(reasons)
	return c.askVoid()
}

// askVoid asks the bank to void, now and at every retry.
func (c *Coordinator) askVoid() protocol.Output {
	c.voiding = true
	return protocol.Output{Send: []protocol.Message{c.annulment()}}
}

func (c *Coordinator) annulment() protocol.Message {
	m := c.message(c.bundle.Bundle.Bank, protocol.Request, protocol.ProtocolRequest, message.Annulment{Bundle: c.bundle})
	m.ReplyWith = "void"
	return m
}

// Annul asks the bank to void a bundle that is not decided (the owner's wish).
func (c *Coordinator) Annul() protocol.Output {
	if c.state != Confirming && c.state != Deciding || c.receipt != nil {
		return protocol.Output{}
	}
	return c.askVoid()
}

// decided takes the bank's decision, whoever brings it. What is no decision
// changes nothing: an unknown contract is shown to the bank.
func (c *Coordinator) decided(now time.Time, d message.Decision) protocol.Output {
	if c.state != Confirming && c.state != Deciding || d.Contract != c.bundle.ID || c.receipt != nil {
		return protocol.Output{}
	}
	if d.Receipt == nil {
		if d.Outcome == protocol.OutcomeUnknown && !now.Before(c.bundle.Bundle.SettleBy) {
			return c.askVoid()
		}
		return protocol.Output{}
	}
	r, bank := d.Receipt, c.bundle.Bundle.Bank
	if !r.Checked() || r.Contract != c.bundle.ID || r.Bank != bank || r.Signer.ID != bank {
		return protocol.Output{} // a receipt, but not for this contract by its bank
	}
	if r.Outcome == protocol.OutcomeSettled && !c.complete() {
		c.awaitCopies(now, r)
		return protocol.Output{Save: []protocol.Record{c.save()}}
	}
	return c.becomeDecided(now, r)
}

func (c *Coordinator) becomeDecided(now time.Time, r *contract.VerifiedReceipt) protocol.Output {
	switch r.Receipt.Outcome {
	case protocol.OutcomeSettled:
		c.state = Settled
	case protocol.OutcomeVoid:
		c.state = Void
	default:
		return protocol.Output{} // no decision
	}
	if c.receipt == nil {
		c.receipt, c.settledAt = r, now
	}
	return protocol.Output{Save: []protocol.Record{c.save()}}
}

// retry asks again for what is missing: void, if that was asked for; copies from
// sellers before settle-by; the decision from the bank. It brings the bank the
// copies that it has, so that a seller that is cut off from the bank loses nobody
// a purchase.
func (c *Coordinator) retry(now time.Time) protocol.Output {
	c.scheduleRetry(now)
	switch {
	case c.receipt != nil:
		return c.retryCopies(now)
	case c.voiding:
		return protocol.Output{Send: []protocol.Message{c.annulment()}}
	}
	var out protocol.Output
	bank := c.bundle.Bundle.Bank
	if c.state == Deciding {
		out.Save = c.saveCopies()
		for _, s := range c.Sales() {
			out.Send = append(out.Send, c.message(bank, protocol.Request, protocol.ProtocolRequest, message.Settlement{Sale: s}))
		}
		return out
	}
	if now.Before(c.bundle.Bundle.SettleBy) {
		out.Send = c.confirmMissing()
	}
	m := c.message(bank, protocol.QueryRef, protocol.ProtocolRequest, message.OutcomeQuery{Contract: c.bundle.ID})
	m.ReplyWith = "outcome"
	out.Send = append(out.Send, m)
	return out
}

// scheduleRetry backs off from RetryFirst to RetryMost.
func (c *Coordinator) scheduleRetry(now time.Time) {
	wait := protocol.RetryMost
	if c.retries < 6 {
		wait = min(wait, protocol.RetryFirst<<c.retries)
	}
	c.retries++
	c.retryAt = now.Add(wait)
}

package reserve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// reconcile compares the journal with what the batch system has. A reservation
// is in the batch system iff the journal says held, countersigned or sold.
func (p *Participant) reconcile(t *turn, q message.QueueChanged) {
	t.all = true
	p.remakeFound(t, q)
	there := map[string]bool{}
	for _, r := range q.Reservations {
		if !r.Mine {
			continue
		}
		c := p.claims[r.ID]
		if c == nil {
			p.unknown(t, r)
			continue
		}
		there[r.ID] = covers(r.Slot, c.item.Slot) // one that is too small is as good as lost
		if c.back() {
			p.release(t, c)
		}
	}
	for _, d := range slices.Clone(p.order) {
		for _, c := range slices.Clone(d.claims) {
			if !there[c.id] && c.missing(q.At) {
				p.lost(t, c)
			}
		}
	}
}

// back reports whether a claim that the batch system shows was freed before: it
// forgot the release, as it may forget a grant.
func (c *claim) back() bool {
	return (c.state == ClaimFreed || c.state == ClaimCancelled || c.state == ClaimBroken) && !c.releasing
}

// missing reports whether a batch system as it was at an instant should have
// had the claim's reservation.
func (c *claim) missing(at time.Time) bool {
	switch c.state {
	case ClaimHeld, ClaimCountersigned, ClaimSold:
		return at.After(c.granted) && c.item.Slot.End.After(at) && !c.remaking && !c.releasing && c.job == nil
	}
	return false
}

// unknown is a reservation with the seller's mark that its journal does not
// have. Everything is saved before it is asked for, so the journal has forgotten
// it, and it can go: the batch system has brought it back, or never released it. But
// if it is newer than the journal, the journal was lost or restored, and a bank may
// have a contract for it: it is left alone, counted as busy by the batch system
// itself, until the banks know of no contract for it that could still come; if they
// are not asked, until its own end.
func (p *Participant) unknown(t *turn, r message.QueueReservation) {
	_, noted := p.strangers[r.ID]
	n, ok := counterOf(r.ID)
	switch {
	case p.foundUnits[r.ID] != nil:
		return // sold
	case p.swept[r.ID], p.certain(), !noted && ok && p.forgot(n):
		t.send(p.queue(message.Release{ID: r.ID}))
		return
	case noted || len(p.strangers) >= maxStrangers:
		return // beyond the bound it is left alone as well
	}
	if ok {
		p.counter = max(p.counter, n) // never make this ID again
	}
	p.strangers[r.ID] = r.Slot
	t.save(strangerRecord(r.ID, &r.Slot))
}

// forgot reports whether the journal knew of a reservation and had forgotten it:
// it was not sold.
func (p *Participant) forgot(n uint64) bool {
	if p.cfg.TrustJournal {
		return n <= p.counter
	}
	return n <= p.forgotten && !p.asOf().IsZero()
}

// counterOf is the last part of a reservation's ID.
func counterOf(id string) (uint64, bool) {
	n, err := strconv.ParseUint(id[strings.LastIndexByte(id, '-')+1:], 10, 63)
	return n, err == nil
}

// forgetStrangers drops those whose slot is over.
func (p *Participant) forgetStrangers(t *turn) {
	ids := make([]string, 0, len(p.strangers))
	for id, slot := range p.strangers {
		if !slot.End.After(t.now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		delete(p.strangers, id)
		t.save(strangerRecord(id, nil))
	}
}

// lost is a reservation that the batch system has no more. What is only held is
// freed; in doubt, the bank is asked for void; what is sold is made again.
func (p *Participant) lost(t *turn, c *claim) {
	d := c.deal
	switch c.state {
	case ClaimHeld:
		if c.unsure {
			return // it may be sold
		}
		p.failVote(t, d, c.offer, nil, "lost by the batch system")
		p.failPending(t, d, protocol.Reason{Code: protocol.CodeUnavailable, Unit: c.item.Unit, Note: "lost by the batch system"})
	case ClaimCountersigned:
		if !d.contract.lost {
			d.contract.lost = true
			p.ask(t, d)
		}
	case ClaimSold:
		if c.refund == nil {
			p.remake(t, c)
		}
	}
}

// remakeTime is how long a batch system that cannot be asked is asked again for a sold
// slot that has begun: one that was just started may not know its nodes yet, and what
// runs in the slot runs on meanwhile.
const remakeTime = time.Minute

// remake asks the batch system for a sold slot that it has lost.
func (p *Participant) remake(t *turn, c *claim) {
	if !c.remaking {
		c.remaking, c.lostAt = true, t.now
	}
	t.backOff(c)
	t.send(p.queue(message.Reserve{ID: c.id, Slot: c.item.Slot}))
}

// remade takes the answer. A batch system that cannot be asked is asked again
// until the slot begins, or for remakeTime; one that refuses has broken the unit.
func (p *Participant) remade(t *turn, c *claim, r message.Reserved) {
	switch {
	case r.OK:
		c.remaking, c.granted, c.retryAt, c.retries = false, t.now, time.Time{}, 0
	case r.Reason.Code == protocol.CodeUnavailable && !c.remadeTooLate(t.now):
		// asked again at its time
	default:
		p.becomeBroken(t, c)
	}
}

// remadeTooLate reports whether a lost slot is not waited for any more.
func (c *claim) remadeTooLate(now time.Time) bool {
	return !now.Before(c.item.Slot.Start) && !now.Before(c.lostAt.Add(remakeTime))
}

// becomeBroken owes the buyer the whole cost of the unit. What the batch system
// may still have of it goes.
func (p *Participant) becomeBroken(t *turn, c *claim) {
	c.become(t.now, ClaimBroken, "lost by the batch system")
	p.release(t, c)
	p.askRefund(t, c)
}

// retryClaim asks again for whatever a claim waits for.
func (p *Participant) retryClaim(t *turn, c *claim) {
	if c.retryAt.IsZero() || t.now.Before(c.retryAt) {
		return
	}
	if c.releasing {
		t.backOff(c)
		t.send(p.queue(message.Release{ID: c.id}))
	}
	switch {
	case c.remaking && c.remadeTooLate(t.now):
		p.becomeBroken(t, c)
	case c.remaking:
		p.remake(t, c)
	case c.owes():
		p.askRefund(t, c)
	}
}

// owes reports whether the bank has still to give money back for a claim.
func (c *claim) owes() bool {
	return c.refund != nil && !c.refund.paid || c.state == ClaimBroken && c.refund == nil
}

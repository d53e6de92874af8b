package reserve

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Participant is the seller's side of every vote, commit and settlement. It routes
// each event to the part that owns the state.
//
// A unit goes through these states. The seller saves each before anybody hears of it:
//
//	reserving --all slots of the offer granted--> held
//	reserving, held --cancelled, refused, lost, hold-until--> freed
//	held --bundle checked, slot confirmed, signed--> countersigned (in doubt)
//	countersigned --the bank settled--> sold
//	countersigned --the bank voided--> freed
//	sold --lost by the batch system for good--> broken
//	sold --cancelled and refunded--> cancelled
//	sold --its job has stopped, in a bundle that is paid after the job--> reported
//
// The seller keeps a countersigned unit until somebody brings a decision signed by
// the bank that the bundle names.
type Participant struct {
	cfg       *ParticipantConfig
	deals     *deals
	slots     slots
	quota     *quota
	banks     *inquiries
	strangers *strangers
	holds     *holds
	refunds   *refunds
	jobs      *jobs
	found     *found
	voids     *voids
	past      *past
	turned    time.Time // the last turn
}

func (p *Participant) begin(now time.Time) *turn {
	t := &turn{self: p.cfg.Self, now: now}
	if now.Before(p.turned.Add(-protocol.ClockSkew)) {
		p.setBack(t)
	}
	p.turned = now
	return t
}

// setBack lets nothing wait for a time of before the clock was set back, dates refunds anew, and
// compares the slots with the batch system.
func (p *Participant) setBack(t *turn) {
	t.all = true
	t.queue(message.QueueQuery{}) // what it has told was compared at another time
	if err := p.back(t); err != nil {
		panic("reserve: " + err.Error()) // all were read or made here before
	}
	soon := func(at *time.Time) {
		if at.After(t.now) {
			*at = t.now
		}
	}
	for _, d := range p.deals.order {
		if d.contract != nil {
			soon(&d.contract.retryAt)
		}
		for _, c := range d.claims {
			for _, at := range []*time.Time{&c.retryAt, &c.check.at, &c.lostAt} {
				soon(at)
			}
			c.granted = time.Time{} // the batch system answers anew
			p.refunds.signAgain(t, c)
			p.slots.rebook(t.now, c.id, c.item.Slot, c.blocks())
		}
	}
	for _, q := range p.banks.list {
		soon(&q.retryAt)
	}
	if p.turned.Sub(t.now) > MaxHold {
		p.banks.again(t)
	}
	p.found.setBack(t.now)
}

// end saves the changed deals and sets the alarm.
func (p *Participant) end(t *turn) protocol.Output {
	for _, d := range t.changed {
		p.quota.weigh(d)
	}
	p.deals.flush(t)
	p.quota.flush(t)
	t.out.WakeAt = protocol.Earlier(protocol.Earlier(p.deals.alarm(t), p.found.due()), protocol.Earlier(p.banks.due(), p.voids.due()))
	return t.out
}

// Accept answers accept-proposal, which asks for a vote. offered is nil if the
// auction has no such live offer.
func (p *Participant) Accept(now time.Time, m protocol.Message, a message.Acceptance, offered *Offered) protocol.Output {
	t := p.begin(now)
	p.holds.accept(t, m, a, offered)
	return p.end(t)
}

// Receive takes any other message of a commit, of a settlement or from the batch
// system. It reports whether the message was one of those.
func (p *Participant) Receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	t := p.begin(now)
	switch body := m.Body.(type) {
	case message.Reserved:
		p.reserved(t, body)
	case message.Released:
		p.released(t, body)
	case message.QueueChanged:
		p.reconcile(t, body)
	case message.SlotUsed:
		p.jobs.slotUsed(t, body)
	case message.Confirmation:
		p.holds.confirm(t, m, body.Bundle)
	case message.Cancellation:
		p.holds.cancel(t, m, body)
	case message.Decision:
		p.decide(t, m, body)
	case message.UnitCancellation:
		p.refunds.cancel(t, m, body)
	case message.Refusal:
		p.banks.refused(m, body)
		p.found.refused(t, m, body)
		p.refunds.refused(t, m, body)
	case message.SoldList:
		p.soldList(t, m, body)
	case message.BundleCopy:
		p.found.copied(t, body.Bundle)
		p.holds.prepare(t, m, body.Bundle)
	default:
		return protocol.Output{}, false
	}
	return p.end(t), true
}

// Wake ends holds at their time, repeats unanswered requests, and archives old deals.
func (p *Participant) Wake(now time.Time) protocol.Output {
	t := p.begin(now)
	t.woken = true
	for _, d := range slices.Clone(p.deals.order) {
		if due := d.dueAt; !due.IsZero() && !now.Before(due) {
			t.see(d)
			p.wakeDeal(t, d)
		}
	}
	p.banks.wake(t)
	p.found.wake(t)
	p.voids.wake(t)
	p.strangers.expire(t)
	p.quota.forget(t)
	return p.end(t)
}

func (p *Participant) wakeDeal(t *turn, d *deal) {
	p.holds.expire(t, d)
	d.retryBank(t)
	for _, c := range d.claims {
		p.retry(t, c)
		p.jobs.watch(t, c)
	}
	p.archive(t, d)
}

// retry repeats the request that a claim waits for.
func (p *Participant) retry(t *turn, c *claim) {
	if c.retryAt.IsZero() || t.now.Before(c.retryAt) {
		return
	}
	switch {
	case p.slots.retry(t, c):
		p.refunds.broken(t, c)
	case !c.remaking && c.owes():
		p.refunds.request(t, c)
	}
}

// Heard tells a Participant that a bank is online, so that it repeats an open
// inquiry at once. A recovering bank may have lost filed records.
func (p *Participant) Heard(now time.Time, bank protocol.AgentID, recovers bool) protocol.Output {
	t := p.begin(now)
	if recovers {
		p.jobs.fileAgain(t, bank)
	}
	p.banks.heard(t, bank)
	return p.end(t)
}

// reserved takes the batch system's answer to Reserve and to Keep. A batch system
// may grant less than requested, which counts as a refusal.
func (p *Participant) reserved(t *turn, r message.Reserved) {
	c := p.deals.claims[r.ID]
	if c == nil {
		return // archived since
	}
	t.see(c.deal)
	if r.OK && !covers(r.Slot, c.item.Slot) {
		r.OK = false
		r.Reason = protocol.Reason{Code: protocol.CodeBusy, Free: r.Slot.Cores, Note: "the batch system granted less than requested"}
	}
	switch {
	case c.remaking:
		if p.slots.remade(t, c, r) {
			p.refunds.broken(t, c)
		}
	case r.Kept:
		p.holds.secured(t, c, r)
	case c.state == ClaimReserving:
		p.holds.granted(t, c, r)
	}
}

// released takes the batch system's answer to Release; a failed one is repeated.
func (p *Participant) released(t *turn, r message.Released) {
	if c := p.deals.claims[r.ID]; c != nil && c.releasing && r.OK {
		p.slots.released(t, c)
		p.holds.sweep(t, c.deal)
	}
}

// reconcile compares the journal with the batch system, which should have exactly
// the reservations that are held, countersigned or sold.
func (p *Participant) reconcile(t *turn, q message.QueueChanged) {
	t.all = true
	p.found.remake(t, q)
	there := map[string]bool{}
	for _, r := range q.Reservations {
		c := p.deals.claims[r.ID]
		switch {
		case !r.Mine:
			continue
		case c != nil:
			there[r.ID] = covers(r.Slot, c.item.Slot) // a reservation that is too small counts as lost
			if c.reappeared() {
				p.slots.release(t, c)
			}
		case p.found.units[r.ID] == nil && !p.past.recently(t.now, r.ID):
			p.strangers.found(t, r)
		}
	}
	for _, d := range slices.Clone(p.deals.order) {
		for _, c := range slices.Clone(d.claims) {
			if !there[c.id] && c.missing(q.At) {
				p.lost(t, c)
			}
		}
	}
}

// lost handles a reservation that the batch system has lost. The seller frees a
// hold, asks the bank to void a contract in doubt, and requests a sold slot again.
func (p *Participant) lost(t *turn, c *claim) {
	switch {
	case c.state == ClaimHeld && !c.unsure: // an unsure one may be sold
		p.holds.lost(t, c)
	case c.state == ClaimCountersigned && !c.deal.contract.lost:
		c.deal.contract.lost = true
		c.deal.askBank(t)
	case c.state == ClaimSold && c.refund == nil:
		p.slots.remake(t, c)
	}
}

// soldList takes a page of a bank's list of contracts. After the last one, the
// seller ends holds that nobody bought while the journal was missing, and frees
// reservations that neither the journal nor the banks know.
func (p *Participant) soldList(t *turn, m protocol.Message, body message.SoldList) {
	q := p.banks.asked(m)
	if q == nil {
		return // an answer to an earlier question, or unsolicited
	}
	q.partial = !body.Complete
	for _, s := range body.Sold {
		for _, u := range s.Units {
			q.listed[u.Reservation] = true
		}
		if !p.past.over(t.now, s) {
			p.found.learn(t, q.bank, s)
		}
	}
	if !q.page(t, body) {
		return
	}
	p.banks.complete(t, q)
	asOf := p.banks.asOf()
	if asOf.IsZero() {
		return
	}
	for _, c := range p.banks.restored {
		if c.unsure && !c.holdUntil.After(asOf) {
			c.unsure = false
			t.see(c.deal)
			p.holds.expire(t, c.deal)
		}
	}
	p.banks.restored = slices.DeleteFunc(p.banks.restored, func(c *claim) bool { return p.deals.claims[c.id] != c })
	if p.banks.certain() {
		p.strangers.release(t)
	}
}

package reserve

import (
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// In the modes that pay after the fact a unit is not over when it is sold. Its
// seller asks the batch system what became of the slot, signs a record of that,
// and shows it to the bank until the bank's receipt says how the unit ended:
//
//	sold --the slot's job has stopped--> reported --receipt--> over
//
// The record is signed once, and is the same whenever it is shown. A seller that
// cannot learn how a job ended says nothing: it is paid nothing.

// Periods of a seller that waits.
const (
	filedPeriod = 5 * time.Minute // between reminders of a record that its user has not answered
	filedSoon   = 4               // questions about such a record, RetryMost apart, before the pauses grow
)

// jobEnd is what a seller has reported of a unit.
type jobEnd struct {
	signed contract.VerifiedNote[contract.JobRecord]
	filed  bool // the bank has it, and waits for the user
}

// lookout is when a seller next looks after a unit that is not over.
type lookout struct {
	at    time.Time // zero: as the contract says
	tries int
}

// contractUnit is a sold claim as its contract has it, if that is paid after the
// fact.
func (c *claim) contractUnit() (protocol.BundleUnit, bool) {
	if c.state != ClaimSold || c.deal.contract == nil || c.deal.contract.sale.Bundle.Mode == protocol.ModeOnReservation {
		return protocol.BundleUnit{}, false
	}
	return c.signedUnit()
}

// signedUnit is a claim as its contract has it, which must be there.
func (c *claim) signedUnit() (protocol.BundleUnit, bool) {
	units := c.deal.contract.sale.Bundle.Units
	i := slices.IndexFunc(units, func(u protocol.BundleUnit) bool { return u.Reservation == c.id })
	if i < 0 {
		return protocol.BundleUnit{}, false
	}
	return units[i], true
}

// paidLater reports whether the bank has still to say how a claim ended.
func (c *claim) paidLater() bool {
	_, ok := c.contractUnit()
	return ok && c.over == ""
}

// jobDue is when a claim's job is to be looked after; zero: not at all. One that
// is being cancelled is not reported.
func (c *claim) jobDue() time.Time {
	if !c.paidLater() || c.refund != nil {
		return time.Time{}
	}
	if c.look.at.IsZero() {
		u, _ := c.contractUnit()
		return nextLook(u, protocol.Usage{}, u.Slot.Start)
	}
	return c.look.at
}

// wait sets the next look at a claim.
func (t *turn) wait(c *claim, d time.Duration) {
	t.see(c.deal)
	c.look.at = t.now.Add(d)
	c.look.tries++
}

// waitFiled sets the next look at a claim whose record is filed. The bank tells how
// it ends, once; one that restarts just then may reach nobody.
func (t *turn) waitFiled(c *claim) {
	pause := filedPeriod
	if more := max(0, c.look.tries-filedSoon); more < maxDoublings {
		pause = min(pause, protocol.RetryMost<<more)
	}
	t.wait(c, pause)
}

// watchJob does what is due for a claim that is not over: it asks the batch
// system, shows the bank the record, or, long after, asks the bank alone.
func (p *Participant) watchJob(t *turn, c *claim) {
	if at := c.jobDue(); at.IsZero() || t.now.Before(at) {
		return
	}
	pr := c.deal.contract
	late := later(c.item.Slot.End, pr.sale.Bundle.SettleBy).Add(protocol.ReportWithin)
	switch {
	case c.job != nil && c.job.filed && c.look.tries <= filedSoon:
		p.askEnd(t, c)
		t.waitFiled(c)
	case c.job != nil:
		p.sendReport(t, c)
	case t.now.Before(late):
		t.send(p.queue(message.SlotQuery{ID: c.id, Slot: c.item.Slot}))
		t.wait(c, backOff(c.look.tries))
	default:
		p.askEnd(t, c)
		t.wait(c, filedPeriod)
	}
}

// askEnd asks the bank how a claim has ended.
func (p *Participant) askEnd(t *turn, c *claim) {
	pr := c.deal.contract
	t.send(p.message(pr.sale.Bundle.Bank, protocol.QueryRef, protocol.ProtocolRequest, c.deal.conversation,
		message.OutcomeQuery{Contract: pr.sale.Verified.ID}))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// slotUsed takes what the batch system says of a slot. A job that is over is
// reported; a metered one is stopped when its contract allows that: its time is
// over, or its prepayment is used up (001).
func (p *Participant) slotUsed(t *turn, s message.SlotUsed) {
	c := p.claims[s.ID]
	if c == nil || c.job != nil || c.jobDue().IsZero() || s.Status.Validate() != nil {
		return // put away, reported, paid already, or nonsense
	}
	u, _ := c.contractUnit()
	used := u.Within(s.Status.Usage)
	switch {
	case s.Status.State.Over():
		p.report(t, c, u, s, used)
	case u.Tariff.TimeLimit > 0 && u.Tariff.MayStop(used):
		s.Status.State, s.Status.Ended = protocol.JobExpired, s.At
		p.report(t, c, u, s, used)
	case t.now.Before(u.Slot.End):
		t.see(c.deal)
		c.look = lookout{at: nextLook(u, used, t.now)}
	default:
		t.wait(c, backOff(c.look.tries))
	}
}

// report signs the record of a unit's job and shows it to the bank. Cores that
// are left of the slot are free again: a job that was stopped ends with them.
func (p *Participant) report(t *turn, c *claim, u protocol.BundleUnit, told message.SlotUsed, used protocol.Usage) {
	s := told.Status
	if s.Ended.IsZero() {
		s.Ended = t.now
	}
	mode := c.deal.contract.sale.Bundle.Mode
	note := contract.JobRecord{
		Version: contract.NoteVersion, Contract: c.deal.contract.sale.Verified.ID, Unit: u.Unit, Seller: p.cfg.Self,
		Success: s.Delivered(), Usage: used, Due: u.Due(mode, s.Delivered(), used), Ended: s.Ended.UTC(),
		Measured: told.Measured,
	}
	signed, err := p.cfg.Notary.Job(note, t.now)
	if err != nil {
		t.wait(c, backOff(c.look.tries)) // the batch system is asked again, and says the same
		return
	}
	c.job, c.look.tries = &jobEnd{signed: signed}, 0
	t.touch(c.deal)
	if t.now.Before(c.item.Slot.End) {
		p.release(t, c)
	}
	p.sendReport(t, c)
}

// sendReport shows the bank the record. One that is filed already is shown to the
// user too, who may have missed it.
func (p *Participant) sendReport(t *turn, c *claim) {
	pr := c.deal.contract
	body := message.JobReport{Bundle: pr.sale.Verified, Signed: c.job.signed}
	m := p.message(pr.sale.Bundle.Bank, protocol.Request, protocol.ProtocolRequest, c.deal.conversation, body)
	m.ReplyWith = "job-" + strconv.Itoa(c.item.Unit)
	t.send(m)
	if !c.job.filed {
		t.wait(c, backOff(c.look.tries))
		return
	}
	t.send(p.message(c.deal.user, protocol.Inform, protocol.ProtocolRequest, c.deal.conversation, body))
	t.waitFiled(c)
}

// fileAgain has a bank shown every record that it had filed before it was restored: it
// takes them when its recovery is over, and pays nothing for units of which it has none.
func (p *Participant) fileAgain(t *turn, bank protocol.AgentID) {
	for _, d := range p.order {
		if d.contract == nil || d.contract.sale.Bundle.Bank != bank {
			continue
		}
		for _, c := range d.claims {
			if c.job != nil && c.job.filed && c.over == "" {
				c.job.filed, c.look = false, lookout{at: t.now}
				t.see(d)
			}
		}
	}
}

// ended looks on a receipt of the contract's own bank for units that have ended.
// What the bank says without an end is that a record was filed.
func (p *Participant) ended(t *turn, m protocol.Message, d *deal, r *contract.VerifiedReceipt) {
	changed := false
	for _, c := range p.promised(d) {
		if !c.paidLater() {
			continue
		}
		i := slices.IndexFunc(r.Ends, func(e protocol.UnitEnd) bool { return e.Unit == c.item.Unit })
		switch {
		case i >= 0:
			c.over, changed = r.Ends[i].How, true
		case c.job != nil && m.Performative == protocol.Agree && m.InReplyTo == "job-"+strconv.Itoa(c.item.Unit):
			if !c.job.filed {
				c.job.filed, c.look.tries = true, 0
			}
			t.waitFiled(c)
		}
	}
	if !changed {
		return
	}
	d.contract.receipt = r
	t.save(receiptRecord(*r))
	t.touch(d)
	t.send(p.informUser(d))
}

// saveJob and readJob are the journal's form of what was reported.
func (c *claim) saveJob(s *savedClaim) {
	s.Over, s.Tariff = c.over, c.tariff
	if c.job != nil {
		note := c.job.signed.Note
		s.Job, s.JobSigned = &note, c.job.signed.DER
	}
}

func (p *Participant) readJob(c *claim, s savedClaim) {
	c.over, c.tariff = s.Over, s.Tariff
	if s.Job != nil {
		c.job = &jobEnd{signed: contract.VerifiedNote[contract.JobRecord]{Note: *s.Job, DER: s.JobSigned}}
		c.job.signed.Signer.ID = p.cfg.Self
	}
}

// showJob adds to a line what is known of the unit's job.
func (c *claim) showJob(l *message.ReservationLine) {
	if c.deal.contract == nil || c.deal.contract.sale.Bundle.Mode == protocol.ModeOnReservation {
		return
	}
	l.Mode, l.Paid = c.deal.contract.sale.Bundle.Mode, c.over
	if c.job != nil {
		l.State, l.Due, l.Usage = "reported", c.job.signed.Note.Due, &c.job.signed.Note.Usage
		l.Measured = c.job.signed.Note.Measured
		if u, ok := c.signedUnit(); ok && l.Mode == protocol.ModeMetered {
			l.Guarantee = u.Tariff.Guarantee(*l.Usage)
		}
	}
}

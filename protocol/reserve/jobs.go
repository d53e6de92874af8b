package reserve

import (
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// jobs reports the jobs of units that are paid after the job. The seller asks the
// batch system how the job ended, signs a record, and shows it to the bank until
// the bank's receipt says how the unit ended:
//
//	sold --the slot's job has stopped--> reported --receipt--> over
//
// The seller signs the record once and always shows the same one. If it cannot
// learn how a job ended, it reports nothing and is not paid.
type jobs struct {
	cfg   *ParticipantConfig
	deals *deals
	slots slots
}

// Periods between checks.
const (
	filedPeriod = 5 * time.Minute // between reminders of a record that the user has not answered
	filedSoon   = 4               // questions about such a record, RetryMost apart, before the pauses grow
)

// jobEnd is the seller's record of a unit's job.
type jobEnd struct {
	signed contract.VerifiedNote[contract.JobRecord]
	filed  bool // the bank has it, and waits for the user
}

// check is the seller's next check on a unit that is not over.
type check struct {
	at    time.Time // zero: as the contract says
	tries int
}

// contractUnit returns the contract's entry for a sold claim, if the mode pays after the job.
func (c *claim) contractUnit() (protocol.BundleUnit, bool) {
	if c.state != ClaimSold || c.deal.contract == nil || c.deal.contract.sale.Bundle.Mode == protocol.ModeOnReservation {
		return protocol.BundleUnit{}, false
	}
	return c.signedUnit()
}

// signedUnit returns the entry for a claim in its contract.
func (c *claim) signedUnit() (protocol.BundleUnit, bool) {
	units := c.deal.contract.sale.Bundle.Units
	i := slices.IndexFunc(units, func(u protocol.BundleUnit) bool { return u.Reservation == c.id })
	if i < 0 {
		return protocol.BundleUnit{}, false
	}
	return units[i], true
}

// paidLater reports whether the bank still has to say how a claim ended.
func (c *claim) paidLater() bool {
	_, ok := c.contractUnit()
	return ok && c.over == ""
}

// jobDue returns when to check on a claim's job; zero: never. The seller does not
// report a claim that is being cancelled.
func (c *claim) jobDue() time.Time {
	if !c.paidLater() || c.refund != nil {
		return time.Time{}
	}
	if c.check.at.IsZero() {
		u, _ := c.contractUnit()
		return nextCheck(u, protocol.Usage{}, u.Slot.Start)
	}
	return c.check.at
}

// wait sets the next check on a claim.
func (t *turn) wait(c *claim, d time.Duration) {
	t.see(c.deal)
	c.check.at = t.now.Add(d)
	c.check.tries++
}

// waitFiled sets the next check on a claim whose record the bank has filed. The
// bank announces the end of the unit once; a restart at that moment may lose it.
func (t *turn) waitFiled(c *claim) {
	pause := filedPeriod
	if more := max(0, c.check.tries-filedSoon); more < maxDoublings {
		pause = min(pause, protocol.RetryMost<<more)
	}
	t.wait(c, pause)
}

// watch takes the next step for a claim that is not over: it asks the batch
// system, shows the bank the record, or, long after the end, only asks the bank.
func (j *jobs) watch(t *turn, c *claim) {
	if at := c.jobDue(); at.IsZero() || t.now.Before(at) {
		return
	}
	last := c.item.Slot.End
	if by := c.deal.contract.sale.Bundle.SettleBy; by.After(last) {
		last = by
	}
	switch {
	case c.job != nil && c.job.filed && c.check.tries <= filedSoon:
		j.askEnd(t, c)
		t.waitFiled(c)
	case c.job != nil:
		j.send(t, c)
	case t.now.Before(last.Add(protocol.ReportWithin)):
		t.queue(message.SlotQuery{ID: c.id, Slot: c.item.Slot})
		t.wait(c, backOff(c.check.tries))
	default:
		j.askEnd(t, c)
		t.wait(c, filedPeriod)
	}
}

// askEnd asks the bank how a claim has ended.
func (j *jobs) askEnd(t *turn, c *claim) {
	sale := c.deal.contract.sale
	t.ask(sale.Bundle.Bank, protocol.QueryRef, c.deal.conversation, "", message.OutcomeQuery{Contract: sale.Verified.ID})
}

// slotUsed takes the batch system's state of a slot. The seller reports a finished job, and stops a
// metered one once the contract allows it: its time is over, or its prepayment is used up (001).
func (j *jobs) slotUsed(t *turn, s message.SlotUsed) {
	c := j.deals.claims[s.ID]
	if c != nil && s.Status.State.Over() {
		j.vacate(t, c)
	}
	if c == nil || c.job != nil || c.jobDue().IsZero() || s.Status.Validate() != nil {
		return // archived, reported, already paid, or invalid
	}
	u, _ := c.contractUnit()
	used := u.Within(s.Status.Usage)
	switch {
	case s.Status.State.Over():
		j.report(t, c, u, s, used)
	case u.Tariff.TimeLimit > 0 && u.Tariff.MayStop(used):
		s.Status.State, s.Status.Ended = protocol.JobExpired, s.At
		j.report(t, c, u, s, used)
	case t.now.Before(u.Slot.End):
		t.see(c.deal)
		c.check = check{at: nextCheck(u, used, t.now)}
	default:
		t.wait(c, backOff(c.check.tries))
	}
}

// vacate sells the rest of a slot again that was paid on reservation: its buyer gives it back
// after its job. It stays paid, since a bundle moves money once.
func (j *jobs) vacate(t *turn, c *claim) {
	pr := c.deal.contract
	if c.state != ClaimSold || pr == nil || pr.sale.Bundle.Mode != protocol.ModeOnReservation || c.refund != nil || c.vacant || !t.now.Before(c.item.Slot.End) {
		return
	}
	c.vacant, c.remaking = true, false
	j.slots.release(t, c)
}

// report signs the record of a unit's job and shows it to the bank. If the slot is
// not over, its cores become free, and a stopped job ends with them.
func (j *jobs) report(t *turn, c *claim, u protocol.BundleUnit, reported message.SlotUsed, used protocol.Usage) {
	s := reported.Status
	if s.Ended.IsZero() {
		s.Ended = t.now
	}
	due := u.Due(c.deal.contract.sale.Bundle.Mode, s.Delivered(), used)
	note := contract.JobRecord{
		Version: contract.NoteVersion, Contract: c.deal.contract.sale.Verified.ID, Unit: u.Unit, Seller: t.self,
		Success: s.Succeeded(), Usage: used, Due: due, Ended: s.Ended.UTC(),
		Measured: reported.Measured,
	}
	signed, err := j.cfg.Notary.Job(note, t.now)
	if err != nil {
		t.wait(c, backOff(c.check.tries)) // the batch system will repeat its answer
		return
	}
	c.job, c.check.tries = &jobEnd{signed: signed}, 0
	t.touch(c.deal)
	if t.now.Before(c.item.Slot.End) {
		j.slots.release(t, c)
	}
	j.send(t, c)
}

// send shows the bank the record. Once the bank has filed it, the user gets it too,
// in case the user missed it.
func (j *jobs) send(t *turn, c *claim) {
	sale := c.deal.contract.sale
	body := message.JobReport{Bundle: sale.Verified, Signed: c.job.signed}
	t.ask(sale.Bundle.Bank, protocol.Request, c.deal.conversation, jobTag(c), body)
	if !c.job.filed {
		t.wait(c, backOff(c.check.tries))
		return
	}
	t.send(t.message(c.deal.user, protocol.Inform, protocol.ProtocolRequest, c.deal.conversation, body))
	t.waitFiled(c)
}

func jobTag(c *claim) string { return "job-" + strconv.Itoa(c.item.Unit) }

// fileAgain shows a restored bank every record that it had filed. It takes them when
// its recovery ends, and pays nothing for units without a record.
func (j *jobs) fileAgain(t *turn, bank protocol.AgentID) {
	for _, d := range j.deals.order {
		if d.contract == nil || d.contract.sale.Bundle.Bank != bank {
			continue
		}
		for _, c := range d.claims {
			if c.job != nil && c.job.filed && c.over == "" {
				c.job.filed, c.check = false, check{at: t.now}
				t.see(d)
			}
		}
	}
}

// ended finds ended units on a receipt of the contract's own bank. If the bank
// agrees without an end, it has filed the record.
func (j *jobs) ended(t *turn, m protocol.Message, d *deal, r *contract.VerifiedReceipt) {
	changed := false
	for _, c := range d.contract.claims {
		if !c.paidLater() {
			continue
		}
		i := slices.IndexFunc(r.Ends, func(e protocol.UnitEnd) bool { return e.Unit == c.item.Unit })
		switch {
		case i >= 0:
			c.over, changed = r.Ends[i].How, true
		case c.job != nil && m.Performative == protocol.Agree && m.InReplyTo == jobTag(c):
			if !c.job.filed {
				c.job.filed, c.check.tries = true, 0
			}
			t.waitFiled(c)
		}
	}
	if changed {
		d.keepReceipt(t, r)
		t.send(d.decision(t))
	}
}

// saveJob and readJob convert the job to and from the journal's form.
func (c *claim) saveJob(s *savedClaim) {
	s.Over, s.Tariff = c.over, c.tariff
	if c.job != nil {
		note := c.job.signed.Note
		s.Job, s.JobSigned = &note, c.job.signed.DER
	}
}

func (c *claim) readJob(self protocol.AgentID, s savedClaim) {
	c.over, c.tariff = s.Over, s.Tariff
	if s.Job != nil {
		c.job = &jobEnd{signed: contract.VerifiedNote[contract.JobRecord]{Note: *s.Job, DER: s.JobSigned}}
		c.job.signed.Signer.ID = self
	}
}

// showJob adds the state of the unit's job to a line.
func (c *claim) showJob(l *message.ReservationLine) {
	if c.vacant {
		l.State = "given back"
	}
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

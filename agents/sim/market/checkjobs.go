package market

import (
	"time"

	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The invariants of jobs that are paid after they end.
const (
	// PaidForJobs: a job is paid once, out of its hold, exactly what the contract says, and
	// nothing if its site failed.
	PaidForJobs = "A-paid-for-jobs"
	// DeliveredIsPaid: cores that a program had are paid, whatever its exit code, metered ones
	// at least the least payment; and nobody gets its outputs before its usage is decided.
	DeliveredIsPaid = "G-delivered-is-paid"
)

// jobChecks checks the payment of jobs after they end; it owns jobBook.
type jobChecks struct {
	audit  *audit
	jobs   *jobBook
	bank   *bankBook
	sites  *siteBook
	honest *honestChecks
}

// jobBook holds the units that the bank holds money for, and what it has paid for others.
type jobBook struct {
	open    map[refundKey]openUnit
	paid    map[refundKey]protocol.Credits
	endedAt map[refundKey]time.Time // in the world's time
}

// openUnit is a unit as its bundle has it.
type openUnit struct {
	protocol.BundleUnit
	user protocol.AgentID
	mode protocol.Mode
}

// reserves checks that the hold for a bundle equals the cost of its units.
func (c *jobChecks) reserves(e ledger.Entry) {
	var held protocol.Credits
	for _, leg := range e.Legs {
		held += max(0, leg.Held) // less than zero: of a voucher
		c.audit.check(PaidForJobs, leg.Amount == 0, "entry %d moves %s when contract %.8s is held", e.Number, leg.Amount, e.Contract)
	}
	c.audit.check(PaidForJobs, held == e.Total, "entry %d holds %s for contract %.8s of %s", e.Number, held, e.Contract, e.Total)
	b, known := c.sites.bundles[e.Contract]
	if !known {
		return // between dishonest parties
	}
	c.audit.check(PaidForJobs, b.Total == e.Total && b.Mode == e.Mode && b.User == e.User,
		"entry %d holds %s of %s for contract %.8s, which says %s of %s", e.Number, e.Total, e.User, e.Contract, b.Total, b.User)
	for _, u := range b.Units {
		key := refundKey{e.Contract, u.Unit}
		c.jobs.open[key] = openUnit{u, b.User, b.Mode}
		c.audit.follow(unitName(key), true)
	}
}

func unitName(k refundKey) string {
	return "unit " + string(k.contract) + " " + string(rune('0'+k.unit))
}

// completes checks that a hold ends once, that its payments equal the earnings, and that
// they stay within the contract.
func (c *jobChecks) completes(e ledger.Entry) {
	key := refundKey{e.Contract, e.Unit}
	released, paid, earned := completed(e)
	c.audit.check(PaidForJobs, paid == earned, "entry %d pays %s of contract %.8s, but %s is earned", e.Number, paid, e.Contract, earned)
	u, open := c.jobs.open[key]
	_, over := c.jobs.paid[key]
	c.audit.check(PaidForJobs, !over, "entry %d ends unit %d of contract %.8s again", e.Number, e.Unit, e.Contract)
	c.jobs.paid[key], c.jobs.endedAt[key] = paid, c.audit.now()
	c.audit.follow(unitName(key), false)
	if !open {
		return // between dishonest parties
	}
	delete(c.jobs.open, key)
	c.audit.check(PaidForJobs, released == u.Cost, "entry %d frees %s for unit %d of contract %.8s, which cost %s", e.Number, released, e.Unit, e.Contract, u.Cost)
	c.audit.check(PaidForJobs, paid >= 0 && paid <= u.Cost, "entry %d pays %s for unit %d of contract %.8s, at most %s", e.Number, paid, e.Unit, e.Contract, u.Cost)
	c.endsAsItWas(e, u, paid)
}

// completed sums up what an entry released from holds, paid out of them, and credited to
// others. A payer may also earn, by its share in its own group's cluster.
func completed(e ledger.Entry) (released, paid, earned protocol.Credits) {
	for _, leg := range e.Legs {
		if leg.Held < 0 {
			released -= leg.Held
			paid -= leg.Amount
		} else {
			earned += leg.Amount
		}
	}
	return released, paid, earned
}

// endsAsItWas compares the end of a unit with what its batch system knows.
func (c *jobChecks) endsAsItWas(e ledger.Entry, u openUnit, paid protocol.Credits) {
	site := c.audit.m.site(c.audit.m.World.Leader(u.Seller))
	if site == nil || !c.audit.isSite(u.Seller) {
		return // a dishonest site reports what it likes
	}
	if used, ran := site.Batch.programs.used(u.Reservation); ran {
		c.paidForPrograms(e, u, paid, used)
		return
	}
	truth := jobsModel().Status(u.Slot.End, u.Reservation, u.Slot)
	switch e.How {
	case protocol.EndSucceeded:
		c.audit.check(PaidForJobs, truth.Delivered() && paid == u.Cost, "entry %d pays %s for unit %d of contract %.8s, whose job failed", e.Number, paid, e.Unit, e.Contract)
	case protocol.EndFailed:
		c.audit.check(PaidForJobs, !truth.Delivered() && paid == 0, "entry %d says that unit %d of contract %.8s failed, and pays %s", e.Number, e.Unit, e.Contract, paid)
	case protocol.EndExpired:
		c.audit.check(PaidForJobs, paid == 0, "entry %d pays %s for unit %d of contract %.8s, which nobody reported", e.Number, paid, e.Unit, e.Contract)
	case protocol.EndAgreed, protocol.EndSilent:
		due := u.Due(u.mode, true, u.Within(truth.Usage))
		c.audit.check(PaidForJobs, paid <= due && u.mode == protocol.ModeMetered, "entry %d pays %s for unit %d of contract %.8s, which used %s", e.Number, paid, e.Unit, e.Contract, due)
	default: // cancelled: an honest site pays back only what it has signed
		c.audit.check(HonestLoseNothing, paid == u.Cost || c.honest.given[refundKey{e.Contract, e.Unit}],
			"%s refunds unit %d of contract %.8s without having signed that", u.Seller.Name(), e.Unit, e.Contract)
		c.bank.refunded[refundKey{e.Contract, e.Unit}] = true
	}
}

// paidForPrograms checks that the buyer pays for what its programs have had, and at most
// for what they have used, at the highest prices of its contract.
func (c *jobChecks) paidForPrograms(e ledger.Entry, u openUnit, paid protocol.Credits, used protocol.Usage) {
	if c.sites.rewound[u.Seller] {
		return // it may have forgotten its programs, and bills the slot as its batch system reports it
	}
	if e.How == protocol.EndSucceeded || e.How == protocol.EndFailed {
		c.audit.check(DeliveredIsPaid, paid == u.Cost, "entry %d pays %s of %s for unit %d of contract %.8s, whose programs ran", e.Number, paid, u.Cost, e.Unit, e.Contract)
	}
	if e.How != protocol.EndAgreed && e.How != protocol.EndSilent {
		return // other checks cover the other ends
	}
	c.audit.check(DeliveredIsPaid, paid >= u.Tariff.Least, "entry %d pays %s for unit %d of contract %.8s, at least %s", e.Number, paid, e.Unit, e.Contract, u.Tariff.Least)
	hours := func(price protocol.Credits, d time.Duration) float64 { return float64(price) * d.Hours() }
	most := max(float64(u.Tariff.Least), hours(u.Tariff.P.Top, used.CPU)+hours(u.Tariff.Q.Top, used.Wall)+1)
	c.audit.check(PaidForJobs, float64(paid) <= most, "entry %d pays %s for unit %d of contract %.8s, whose programs used %s in %s", e.Number, paid, e.Unit, e.Contract, used.CPU, used.Wall)
}

// delivers checks a site's status of a launch that brings outputs.
func (c *jobChecks) delivers(site protocol.AgentID, s message.LaunchStatus) {
	if len(s.Outputs) == 0 || !s.Job.Delivered() || c.sites.bundles[s.Contract].Mode != protocol.ModeMetered || !c.audit.isSite(site) || c.sites.rewound[site] {
		return
	}
	_, ended := c.jobs.paid[refundKey{s.Contract, s.Unit}]
	c.audit.check(DeliveredIsPaid, ended, "%s gives away the outputs of unit %d of contract %.8s, whose usage is not decided", site.Name(), s.Unit, s.Contract)
}

// noticeTime is how long after a unit's end its user may not know of it.
const noticeTime = 40 * time.Minute

// finish checks that every unit has ended whose slot is long over.
func (c *jobChecks) finish() {
	for key, u := range c.jobs.open { // in any order: each is checked by itself
		ended := c.audit.now().Sub(u.Slot.End) < time.Hour+noticeTime || !c.audit.isSite(u.Seller)
		c.audit.check(PaidForJobs, ended, "unit %d of contract %.8s was over at %s, but is still held", key.unit, key.contract, u.Slot.End.Format(time.TimeOnly))
	}
}

// finishUnits compares a user's view of its units with the bank's.
func (c *jobChecks) finishUnits(p message.Purchase) {
	jump := c.audit.m.cfg.Faults.Jump // who waits asks that much later if its clock is set back
	for _, u := range p.Units {
		key := refundKey{p.Contract, u.Unit}
		paid, ended := c.jobs.paid[key]
		if !ended || c.audit.now().Sub(c.jobs.endedAt[key]) < noticeTime+jump.Most-jump.Least {
			continue
		}
		knows := u.State != user.StateSettled && (u.Paid == paid || u.State == user.StateCancelled || u.State == user.StateCancelling)
		c.audit.check(PaidForJobs, knows, "purchase %s believes that unit %d is %s and cost %s; the bank took %s", p.ID, u.Unit, u.State, u.Paid, paid)
	}
}

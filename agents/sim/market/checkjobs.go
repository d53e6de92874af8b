package market

import (
	"slices"
	"time"

	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// PaidForJobs: of what is held for a job exactly what the contract says is paid,
// once, and nothing for a job that failed.
const PaidForJobs = "A-paid-for-jobs"

// jobBook is what the bank holds and has paid for units after the fact.
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

func newJobBook() jobBook {
	return jobBook{open: map[refundKey]openUnit{}, paid: map[refundKey]protocol.Credits{}, endedAt: map[refundKey]time.Time{}}
}

// bankReserves: what is held for a bundle are its units' costs.
func (c *Checks) bankReserves(e ledger.Entry) {
	var held protocol.Credits
	for _, leg := range e.Legs {
		held += leg.Held
		c.check(PaidForJobs, leg.Amount == 0, "entry %d moves %s when contract %.8s is held", e.Number, leg.Amount, e.Contract)
	}
	c.check(PaidForJobs, held == e.Total, "entry %d holds %s for contract %.8s of %s", e.Number, held, e.Contract, e.Total)
	b, known := c.bundles[e.Contract]
	if !known {
		return // between dishonest parties
	}
	c.check(PaidForJobs, b.Total == e.Total && b.Mode == e.Mode && b.User == e.User,
		"entry %d holds %s of %s for contract %.8s, which says %s of %s", e.Number, e.Total, e.User, e.Contract, b.Total, b.User)
	for _, u := range b.Units {
		key := refundKey{e.Contract, u.Unit}
		c.jobs.open[key] = openUnit{u, b.User, b.Mode}
		c.follow(unitName(key), true)
	}
}

func unitName(k refundKey) string {
	return "unit " + string(k.contract) + " " + string(rune('0'+k.unit))
}

// bankCompletes: a hold ends once; what it paid is what was earned, and no more
// than the contract allows.
func (c *Checks) bankCompletes(e ledger.Entry) {
	key := refundKey{e.Contract, e.Unit}
	released, paid, earned := completed(e)
	c.check(PaidForJobs, paid == earned, "entry %d pays %s of contract %.8s, and %s is earned", e.Number, paid, e.Contract, earned)
	u, open := c.jobs.open[key]
	_, over := c.jobs.paid[key]
	c.check(PaidForJobs, !over, "entry %d ends unit %d of contract %.8s again", e.Number, e.Unit, e.Contract)
	c.jobs.paid[key], c.jobs.endedAt[key] = paid, c.now()
	c.follow(unitName(key), false)
	if !open {
		return // between dishonest parties
	}
	delete(c.jobs.open, key)
	c.check(PaidForJobs, released == u.Cost, "entry %d frees %s for unit %d of contract %.8s, which cost %s", e.Number, released, e.Unit, e.Contract, u.Cost)
	c.check(PaidForJobs, paid >= 0 && paid <= u.Cost, "entry %d pays %s for unit %d of contract %.8s, at most %s", e.Number, paid, e.Unit, e.Contract, u.Cost)
	c.endsAsItWas(e, u, paid)
}

// completed is what an entry freed of holds, paid out of them, and gave to others.
// Who pays may also earn, by its share in its own group's cluster.
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

// endsAsItWas holds the end of a unit against what its batch system knows.
func (c *Checks) endsAsItWas(e ledger.Entry, u openUnit, paid protocol.Credits) {
	site := c.m.site(c.m.World.Leader(u.Seller))
	if site == nil || !c.isSite(u.Seller) {
		return // it says what it likes
	}
	if used, ran := site.Batch.programs.used(u.Reservation); ran {
		c.paidForPrograms(e, u, paid, used)
		return
	}
	truth := jobsModel().Status(u.Slot.End, u.Reservation, u.Slot)
	switch e.How {
	case protocol.EndSucceeded:
		c.check(PaidForJobs, truth.Delivered() && paid == u.Cost, "entry %d pays %s for unit %d of contract %.8s, whose job failed", e.Number, paid, e.Unit, e.Contract)
	case protocol.EndFailed:
		c.check(PaidForJobs, !truth.Delivered() && paid == 0, "entry %d says that unit %d of contract %.8s failed, and pays %s", e.Number, e.Unit, e.Contract, paid)
	case protocol.EndExpired:
		c.check(PaidForJobs, paid == 0, "entry %d pays %s for unit %d of contract %.8s, of which nobody heard", e.Number, paid, e.Unit, e.Contract)
	case protocol.EndAgreed, protocol.EndSilent:
		due := u.Due(u.mode, true, u.Within(truth.Usage))
		c.check(PaidForJobs, paid <= due && u.mode == protocol.ModeMetered, "entry %d pays %s for unit %d of contract %.8s, which used %s", e.Number, paid, e.Unit, e.Contract, due)
	default: // cancelled: a site that gives something back has signed that
		c.check(HonestLoseNothing, paid == u.Cost || c.loss.given[refundKey{e.Contract, e.Unit}],
			"%s gives unit %d of contract %.8s back, and has not signed that", u.Seller.Name(), e.Unit, e.Contract)
		c.bank.refunded[refundKey{e.Contract, e.Unit}] = true
	}
}

// paidForPrograms: who ran programs pays at most for what they have used by now, at
// the highest prices of its contract.
func (c *Checks) paidForPrograms(e ledger.Entry, u openUnit, paid protocol.Credits, used protocol.Usage) {
	if u.mode != protocol.ModeMetered || e.How != protocol.EndAgreed && e.How != protocol.EndSilent {
		return // of the others the bank's own rules are held elsewhere
	}
	if c.rewound[u.Seller] {
		return // it may have forgotten its programs, and bills what its batch system says of the slot
	}
	hours := func(price protocol.Credits, d time.Duration) float64 { return float64(price) * d.Hours() }
	most := hours(u.Tariff.P.Top, used.CPU) + hours(u.Tariff.Q.Top, used.Wall) + 1
	c.check(PaidForJobs, float64(paid) <= most, "entry %d pays %s for unit %d of contract %.8s, whose programs used %s in %s", e.Number, paid, e.Unit, e.Contract, used.CPU, used.Wall)
}

// completeHonest: an honest user pays for what it signed, at most what it signed.
func (c *Checks) completeHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		if !c.isUser(who) {
			continue
		}
		c.loss.spent[who] -= leg.Amount
		if leg.Held >= 0 {
			continue // it earns as a member
		}
		b, signed := c.loss.signed[e.Contract]
		i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == e.Unit })
		c.check(HonestLoseNothing, signed && b.User == who && i >= 0 && -leg.Held <= b.Units[i].Cost,
			"%s pays for unit %d of contract %.8s, and has not signed that", who.Name(), e.Unit, e.Contract)
	}
}

// untold is how long after a unit's end its user may not have heard of it.
const untold = 40 * time.Minute

// finishJobs: every unit whose slot is long over has ended, and its user knows.
func (c *Checks) finishJobs() {
	for key, u := range c.jobs.open { // in any order: each by itself
		ended := c.now().Sub(u.Slot.End) < time.Hour+untold || !c.isSite(u.Seller)
		c.check(PaidForJobs, ended, "unit %d of contract %.8s was over at %s, and is still held", key.unit, key.contract, u.Slot.End.Format(time.TimeOnly))
	}
}

// finishUnits holds what a user believes of its units against the bank.
func (c *Checks) finishUnits(p message.Purchase) {
	for _, u := range p.Units {
		key := refundKey{p.Contract, u.Unit}
		paid, ended := c.jobs.paid[key]
		if !ended || c.now().Sub(c.jobs.endedAt[key]) < untold {
			continue
		}
		knows := u.State != user.StateSettled && (u.Paid == paid || u.State == user.StateCancelled || u.State == user.StateCancelling)
		c.check(PaidForJobs, knows, "purchase %s believes that unit %d is %s and cost %s; the bank took %s", p.ID, u.Unit, u.State, u.Paid, paid)
	}
}

func (c *Checks) now() time.Time { return c.m.World.Now() }

package market

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/agents/user/sweep"
	"ramp/agents/user/sweeper"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The invariants of sweeps.
const (
	// SweepTerms: what was paid for a sweep, and what its leases may still cost, is within its budget at
	// every instant; and no slot ends after its deadline.
	SweepTerms = "I-sweep-terms"
	// SweepOnce: an attempt begins once, while no other of its task runs, and a task's result is used once.
	SweepOnce = "J-sweep-once"
	// SweepFailures: a site where three tasks failed in a row gets no more for a while.
	SweepFailures = "K-sweep-failures"
	// SweepLedger: the ledger of a sweep sums to what its owner paid at the bank.
	SweepLedger = "L-sweep-ledger"
)

// sweepChecks owns the books of all sweeps, made from durable records.
type sweepChecks struct {
	audit  *audit
	bank   *bankBook
	sites  *siteBook
	honest *honestChecks
	by     map[string]*sweepBook // by ID
	of     map[protocol.ContractID]string
}

// sweepBook is a sweep as its user's disk and the bank have it.
type sweepBook struct {
	id       string
	host     *sim.Host
	budget   protocol.Credits
	deadline time.Time
	leases   map[string]*leaseBook
	tasks    map[string]taskRow
	sum      protocol.Credits // paid, or committed to leases
	ends     map[protocol.AgentID][]taskEnd
}

// leaseBook is a lease: a purchase that was ordered for a sweep.
type leaseBook struct {
	site     protocol.AgentID
	most     protocol.Credits // that it was ordered for
	deadline time.Time        // of its sweep, at that time
	over     bool             // it was not bought
	contract protocol.ContractID
	closed   bool
}

// taskRow is the record of a task, and taskEnd the end of an attempt.
type (
	taskRow struct {
		State    string          `json:"state"`
		Attempts []sweep.Attempt `json:"attempts"`
	}
	taskEnd struct {
		at     time.Duration
		failed bool
	}
)

// The marks in the IDs of leases and tasks, before their numbers.
const leaseMark, taskMark = ".l", ".t"

// sweepOf is the sweep of a lease or a task; empty: it is of none.
func sweepOf(id, mark string) string {
	sweep, _, ok := strings.Cut(id, mark)
	if !ok || !strings.Contains(sweep, "-sweep-") {
		return ""
	}
	return sweep
}

// saved checks a record of a user.
func (c *sweepChecks) saved(h *sim.Host, r protocol.Record) {
	if r.Value == nil {
		return
	}
	var err error
	switch r.Table {
	case sweeper.Table:
		err = c.terms(h, r)
	case sweeper.TableLeases:
		err = c.lease(r)
	case sweeper.TableTasks:
		err = c.task(r)
	case user.TablePurchases:
		err = c.purchase(r)
	}
	c.audit.check(SweepTerms, err == nil, "%s: %s %s cannot be read: %v", h.Name, r.Table, r.Key, err)
}

// terms takes a sweep, whose terms its owner has allowed.
func (c *sweepChecks) terms(h *sim.Host, r protocol.Record) error {
	var row struct {
		Created time.Time
		Terms   sweep.Terms
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return err
	}
	b := c.by[r.Key]
	if b == nil {
		b = &sweepBook{id: r.Key, host: h, leases: map[string]*leaseBook{}, tasks: map[string]taskRow{}, ends: map[protocol.AgentID][]taskEnd{}}
		c.by[r.Key] = b
	}
	b.budget, b.deadline = row.Terms.Budget, row.Created.Add(row.Terms.Deadline)
	given := c.audit.m.sweepTerms(r.Key)
	c.audit.check(SweepTerms, slices.Contains(given.budgets, b.budget) && slices.ContainsFunc(given.deadlines, b.deadline.Equal),
		"sweep %s has a budget of %s until %s; its owner said %s, %s", b.id, b.budget, b.deadline.Format(time.TimeOnly), given.budgets, given.deadlines)
	c.audit.follow("sweep "+b.id, c.audit.now().Before(b.deadline))
	return nil
}

// sweepTerms are those that the owner of a sweep has allowed.
func (m *Market) sweepTerms(id string) sweepTerms {
	for _, u := range m.users {
		if t, ok := u.sweeps.given[id]; ok {
			return t
		}
	}
	return sweepTerms{}
}

// lease takes a lease. Its money is committed from its first record on.
func (c *sweepChecks) lease(r protocol.Record) error {
	id := sweepOf(r.Key, leaseMark)
	b := c.by[id]
	var row sweep.Lease
	err := json.Unmarshal(r.Value, &row)
	c.audit.check(SweepTerms, b != nil, "lease %s is of no sweep", r.Key)
	if err != nil || b == nil {
		return err
	}
	l := b.leases[r.Key]
	if l == nil {
		l = &leaseBook{site: protocol.AgentID(row.Site), most: row.Held, deadline: b.deadline}
		b.leases[r.Key] = l
	}
	l.over, l.closed = l.over || row.Closed && !row.Signed, row.Closed
	c.sum(b)
	return nil
}

// purchase takes the purchase of a lease: it may not cost more than was committed.
func (c *sweepChecks) purchase(r protocol.Record) error {
	id := sweepOf(r.Key, leaseMark)
	b := c.by[id]
	if b == nil {
		return nil
	}
	row, err := user.ReadRow(r.Value)
	l := b.leases[r.Key]
	c.audit.check(SweepTerms, l != nil, "purchase %s was ordered before its lease was saved", r.Key)
	if err != nil || l == nil {
		return err
	}
	c.audit.check(SweepTerms, row.Order.Options.MaxCost <= l.most, "purchase %s may cost %s; %s were committed", r.Key, row.Order.Options.MaxCost, l.most)
	l.over = l.over || user.Over(row.State) && !row.Settled
	c.sum(b)
	return nil
}

// signed takes the contract that a user has signed for a lease.
func (c *sweepChecks) signed(h *sim.Host, purchase string) {
	id := sweepOf(purchase, leaseMark)
	b := c.by[id]
	if b == nil || b.leases[purchase] == nil {
		return
	}
	l := b.leases[purchase]
	l.contract = c.honest.bundles[h.Name+" "+purchase]
	c.of[l.contract] = b.id
	last := protocol.Later(l.deadline, b.deadline)
	for _, u := range c.honest.signed[l.contract].Units {
		c.audit.check(SweepTerms, !u.Slot.End.After(last), "lease %s ends at %s; its deadline is %s", purchase, u.Slot.End.Format(time.TimeOnly), last.Format(time.TimeOnly))
	}
	c.sum(b)
}

// entry takes an entry of the bank.
func (c *sweepChecks) entry(e ledger.Entry) {
	if b := c.by[c.of[e.Contract]]; b != nil {
		c.sum(b)
	}
}

// cost is what a lease has cost or may still cost.
func (c *sweepChecks) cost(l *leaseBook) protocol.Credits {
	switch {
	case l.contract != "" && c.bank.outcome[l.contract] == protocol.OutcomeSettled:
		return c.paid(l)
	case l.over || l.contract != "" && c.bank.outcome[l.contract] == protocol.OutcomeVoid:
		return 0
	}
	return l.most
}

// paid is what the bank took for a lease, less refunds.
func (c *sweepChecks) paid(l *leaseBook) (sum protocol.Credits) {
	if c.bank.outcome[l.contract] != protocol.OutcomeSettled {
		return 0
	}
	for _, u := range c.honest.signed[l.contract].Units {
		sum += u.Cost - c.bank.refunds[refundKey{l.contract, u.Unit}]
	}
	return sum
}

// sum checks the budget. One that its owner lowers may be below what is committed then.
func (c *sweepChecks) sum(b *sweepBook) {
	var sum protocol.Credits
	for _, l := range b.leases { // in any order: a sum
		sum += c.cost(l)
	}
	c.audit.check(SweepTerms, sum <= max(b.budget, b.sum), "sweep %s has paid or committed %s of %s", b.id, sum, b.budget)
	b.sum = sum
}

// task takes the record of a task.
func (c *sweepChecks) task(r protocol.Record) error {
	id := sweepOf(r.Key, taskMark)
	b := c.by[id]
	var row taskRow
	err := json.Unmarshal(r.Value, &row)
	c.audit.check(SweepOnce, b != nil, "task %s is of no sweep", r.Key)
	if err != nil || b == nil {
		return err
	}
	was, succeeded := b.tasks[r.Key], 0
	for k, a := range row.Attempts {
		if a.How == sweep.Succeeded {
			succeeded++
		}
		ended := a.How != "" && (k >= len(was.Attempts) || was.Attempts[k].How == "")
		if site := protocol.AgentID(a.Site); ended {
			b.ends[site] = append(b.ends[site], taskEnd{a.Ended, a.How != sweep.Succeeded})
		}
		if k >= len(was.Attempts) {
			c.begun(b, r.Key, a)
		}
	}
	done := sweep.Done.String()
	c.audit.check(SweepOnce, len(row.Attempts) >= len(was.Attempts), "task %s has %d attempts, and had %d", r.Key, len(row.Attempts), len(was.Attempts))
	c.audit.check(SweepOnce, succeeded <= 1 && (row.State != done || succeeded == 1), "task %s is %s, and has succeeded %d times", r.Key, row.State, succeeded)
	c.audit.check(SweepOnce, was.State != done || row.State == done && len(row.Attempts) == len(was.Attempts), "task %s was done, and is %s after %d attempts", r.Key, row.State, len(row.Attempts))
	b.tasks[r.Key] = row
	return nil
}

// leftOut is for how long a site gets no tasks at least, by the clock of their user.
const leftOut = 4 * time.Minute

// begun checks that an attempt does not begin where the last ones failed, if the sweep has a lease
// where none has.
func (c *sweepChecks) begun(b *sweepBook, task string, a sweep.Attempt) {
	site := protocol.AgentID(a.Site)
	other := ""
	for _, l := range b.leases { // in any order: one is enough
		ends := b.ends[l.site]
		if l.site != site && l.contract != "" && !l.closed && len(ends) > 0 && !slices.ContainsFunc(ends, func(e taskEnd) bool { return e.failed }) {
			other = l.site.Name()
		}
	}
	c.audit.check(SweepFailures, !b.fails(site, a.Began) || other == "", "task %s begins at %s, where the last %d failed; %s has a lease", task, site.Name(), sweep.Failures, other)
}

// fails reports whether the last attempts at a site have failed, a short while ago.
func (b *sweepBook) fails(site protocol.AgentID, now time.Duration) bool {
	ends := b.ends[site]
	if len(ends) < sweep.Failures || now < ends[len(ends)-1].at || now > ends[len(ends)-1].at+leftOut {
		return false
	}
	return !slices.ContainsFunc(ends[len(ends)-sweep.Failures:], func(e taskEnd) bool { return !e.failed })
}

// begins checks a job that begins on a site's machine: it is of the last attempt of its task, which is
// not over.
func (c *sweepChecks) begins(launch string) {
	id := sweepOf(launch, taskMark)
	if id == "" {
		return
	}
	task, attempt, _ := strings.Cut(launch[len(id)+1:], ".")
	n, err := strconv.Atoi(attempt)
	row := taskRow{}
	if b := c.by[id]; b != nil {
		row = b.tasks[id+"."+task]
	}
	c.audit.check(SweepOnce, err == nil && n == len(row.Attempts) && row.Attempts[n-1].How == "", "launch %s begins; its task has %d attempts, and is %s", launch, len(row.Attempts), row.State)
}

// finish compares the ledgers of a user's sweeps with the bank's books, once its agent has had the time
// to hear of the last refunds.
func (c *sweepChecks) finish(u *User) {
	sweeps := u.Sweeps()
	if sweeps == nil || c.audit.m.World.Now().Sub(c.audit.m.calmed) < noticeTime {
		return // reported as down, or interrupted
	}
	now := u.Host.Now()
	for _, id := range sorted(c.by) {
		b := c.by[id]
		if b.host.ID() != u.Host.ID() {
			continue
		}
		ledger, known := sweeps.Ledger(id)
		view, _ := sweeps.Show(now, id)
		c.audit.check(SweepLedger, known, "%s does not know its sweep %s", u.Host.Name, id)
		c.finishLedger(b, ledger, view)
		over := view.State != "running" && view.Committed == 0 && view.Tasks.Running == 0
		c.audit.check(SweepLedger, over || now.Before(b.deadline.Add(noticeTime)), "sweep %s is %s after its deadline, with %s committed and %d tasks running", id, view.State, view.Committed, view.Tasks.Running)
	}
}

func (c *sweepChecks) finishLedger(b *sweepBook, ledger []message.SweepEntry, view message.Sweep) {
	var sum, bank protocol.Credits
	for _, e := range ledger {
		l := b.leases[e.Lease]
		c.audit.check(SweepLedger, l != nil && l.contract == e.Contract && e.Paid-e.Refunded == c.paid(l), "the ledger of sweep %s has %+v; the bank does not", b.id, e)
		sum += e.Paid - e.Refunded
	}
	for _, l := range b.leases { // in any order: a sum
		bank += c.paid(l)
	}
	c.audit.check(SweepLedger, sum == bank && view.Spent == bank, "sweep %s says that it spent %s, its ledger %s, the bank %s", b.id, view.Spent, sum, bank)
}

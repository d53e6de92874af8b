package market

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The invariants of protocol.md, as violations name them.
const (
	NoPanic      = "0-panic" // a role found itself in a state that cannot be
	AllOrNothing = "1-all-or-nothing"
	CoresOnce    = "2-cores-sold-once"
	HoldsEnd     = "3-holds-end"
	Money        = "4-money"
	Decided      = "5-decided"
	Credentials  = "6-credentials"
	Bounded      = "7-bounded"

	HonestLoseNothing = "8-honest-lose-nothing"
	BidsCounted       = "9-honest-bids-counted"
)

// Invariants are all of them, in order.
func Invariants() []string {
	return []string{AllOrNothing, CoresOnce, HoldsEnd, Money, Decided, Credentials, Bounded, HonestLoseNothing, BidsCounted, PaidForJobs, OneJob}
}

// maxViolations are kept; the first is what matters.
const maxViolations = 20

// Violation is something that must not be.
type Violation struct {
	At        time.Time `json:"at"`
	Invariant string    `json:"invariant"`
	What      string    `json:"what"`
}

// Checks holds a market against the invariants, record by record as they become
// durable. It reads only what is durable and what was delivered, and decodes it
// by itself; it never asks a role what it thinks, but for how much it keeps in
// memory.
type Checks struct {
	m          *Market
	bank       bankBook
	claims     map[protocol.AgentID]map[string]*claim
	forgotten  map[claimKey]*claim // countersigned, and not so in a journal that was put back
	rewound    map[protocol.AgentID]bool
	held       map[claimKey]*claim
	bundles    map[protocol.ContractID]protocol.Bundle
	deals      map[string][]claimKey // of a site's deal
	going      map[string]bool
	counts     map[string]int
	violations []Violation
	loss       honestBook
	jobs       jobBook
	bids       bidsBook
	begun      map[launchKey]int // how often
	ticks      int
}

// NewChecks makes checks for one market; give them to New, and Watch it then.
func NewChecks() *Checks {
	return &Checks{
		bank: newBankBook(), claims: map[protocol.AgentID]map[string]*claim{}, forgotten: map[claimKey]*claim{}, rewound: map[protocol.AgentID]bool{}, held: map[claimKey]*claim{}, bundles: map[protocol.ContractID]protocol.Bundle{},
		deals: map[string][]claimKey{}, going: map[string]bool{}, counts: map[string]int{},
		loss: newHonestBook(), jobs: newJobBook(), bids: newBidsBook(), begun: map[launchKey]int{},
	}
}

// Open makes a market that is watched by Checks.
func Open(cast *Cast, cfg Config, more ...sim.Observer) (*Market, *Checks) {
	c := NewChecks()
	m := New(cast, cfg, append([]sim.Observer{c}, more...)...)
	c.m = m
	for _, s := range m.sites {
		s.Batch.JobBegins(func(job message.Job, now time.Time) { c.jobBegins(s, job, now) })
	}
	c.tick()
	return m, c
}

// Violations are what was found so far, at most maxViolations.
func (c *Checks) Violations() []Violation { return c.violations }

// Counts are how often each invariant was looked at.
func (c *Checks) Counts() map[string]int { return c.counts }

// check counts one look at an invariant, and keeps what is wrong.
func (c *Checks) check(invariant string, ok bool, format string, args ...any) {
	c.counts[invariant]++
	if ok || len(c.violations) >= maxViolations {
		return
	}
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...)}
	if c.m != nil {
		v.At = c.m.World.Now()
	}
	c.violations = append(c.violations, v)
}

// Durable takes what a host saved.
func (c *Checks) Durable(h *sim.Host, records []protocol.Record) {
	if c.m != nil && !c.m.honest(h.ID()) {
		return // what it writes into its own journal is its own business
	}
	for _, r := range records {
		switch r.Table {
		case ledger.TableLines, ledger.TableEntries:
			c.bankSaved(r)
		case reserve.TableDeals, reserve.TableSales:
			c.siteSaved(h, r)
		case user.TablePurchases:
			c.userSaved(h, r)
		case reserve.TableBundles:
			c.userSigned(h, r)
		}
	}
}

// Delivered takes what a host is about to receive.
func (c *Checks) Delivered(to, from *sim.Host, m protocol.Message) {
	c.counts[Credentials]++
	if p, ok := m.Body.(message.Proposal); ok {
		c.bidArrives(to, from, m.Conversation, p)
	}
	if !from.Trusted() {
		c.check(Credentials, false, "%s takes %s of %s, whom nobody vouches for", to.Name, m.Body.Kind(), from.Name)
	}
}

// Sent has nothing to look at: what counts is what was durable before.
func (c *Checks) Sent(*sim.Host, protocol.Message) {}

// Refused takes what could not be opened; that is how it should be.
func (c *Checks) Refused(*sim.Host, protocol.AgentID, error) { c.counts[Credentials]++ }

// follow keeps which things are going on.
func (c *Checks) follow(what string, going bool) {
	if going {
		c.going[what] = true
	} else {
		delete(c.going, what)
	}
}

// Going is how many purchases are not over, contracts not decided, and
// reservations neither sold nor free, as the journals have them.
func (c *Checks) Going() int { return len(c.going) }

// userSaved holds what a user believes against the bank.
func (c *Checks) userSaved(h *sim.Host, r protocol.Record) {
	if r.Value == nil {
		return
	}
	row, err := user.ReadRow(r.Value)
	c.check(Decided, err == nil, "%s: purchase %s cannot be read: %v", h.Name, r.Key, err)
	p := row.Purchase
	c.follow("purchase "+h.Name+" "+r.Key, !over(p.State))
	switch p.State {
	case user.StateSettled:
		c.check(AllOrNothing, c.bank.outcome[p.Contract] == protocol.OutcomeSettled,
			"%s believes that %s is settled; the bank says %q", h.Name, p.ID, c.bank.outcome[p.Contract])
	case user.StateVoid:
		c.check(AllOrNothing, c.bank.outcome[p.Contract] != protocol.OutcomeSettled,
			"%s believes that %s is void; the bank settled it", h.Name, p.ID)
	}
}

// over reports whether a purchase in this state is.
func over(state string) bool {
	switch state {
	case user.StateSettled, user.StateVoid, user.StateFailed, user.StateInterrupted, user.StateCancelled:
		return true
	}
	return false
}

// tickPeriod is between looks at what passes with time.
const tickPeriod = 30 * time.Second

// tick looks at holds and queues now, and again after a while.
func (c *Checks) tick() {
	c.checkHolds()
	c.checkSizes()
	c.judgeBids()
	c.m.World.After(tickPeriod, c.tick)
}

// Finish looks at a market that has settled: everything is over, and journals,
// batch systems and ledger agree.
func (c *Checks) Finish() {
	for _, h := range c.m.World.Hosts() {
		c.check(Decided, h.Up() || c.m.World.Leader(h.ID()) != h, "%s does not come up", h.Name)
	}
	c.finishLedger()
	c.finishHonest()
	c.finishJobs()
	c.finishBids()
	for _, s := range c.m.sites {
		c.finishSite(s)
	}
	for _, u := range c.m.users {
		c.finishUser(u)
		c.finishRuns(u)
	}
}

// finishUser sees that every purchase of a user is over, as its bank decided.
func (c *Checks) finishUser(u *User) {
	err := u.Host.Disk().Each(user.TablePurchases, func(id string, value []byte) error {
		row, err := user.ReadRow(value)
		if err != nil {
			return err
		}
		c.check(Decided, over(row.Purchase.State), "purchase %s is still %s", id, row.Purchase.State)
		return c.finishPurchase(u, row.Purchase)
	})
	c.check(Decided, err == nil, "%s: %v", u.Host.Name, err)
}

func (c *Checks) finishPurchase(u *User, p message.Purchase) error {
	if p.Contract == "" {
		return nil
	}
	c.finishUnits(p)
	o := c.bank.outcome[p.Contract]
	settled := p.State == user.StateSettled
	if p.State == user.StateCancelled && o == protocol.OutcomeSettled {
		return nil // bought, and every unit cancelled since
	}
	c.check(AllOrNothing, settled == (o == protocol.OutcomeSettled), "purchase %s of %s is %s, and %q at the bank", p.ID, u.Host.Name, p.State, o)
	return nil
}

// finishLedger audits the bank from its entries.
func (c *Checks) finishLedger() {
	report, err := ledger.Audit(c.m.bank.Disk())
	c.check(Money, err == nil, "the bank's ledger cannot be audited: %v", err)
	if err == nil {
		c.check(Money, len(report.Bad) == 0, "the bank's ledger: %q", report.Bad)
	}
	for _, id := range slices.Sorted(maps.Keys(c.bundles)) {
		c.check(Decided, c.bank.outcome[id] != "", "contract %.8s of %s is not decided", id, c.bundles[id].User)
	}
}

// finishSite compares a site's journal with its batch system and its account.
func (c *Checks) finishSite(s *Site) {
	role, ok := s.Host.Role().(*resource.Role)
	if !ok {
		return // told as down
	}
	errs := []error{c.compareQueue(s, role.Reservations()), c.comparePaid(s)}
	c.check(CoresOnce, errs[0] == nil, "%v", errs[0])
	c.check(Money, errs[1] == nil, "%v", errs[1])
}

func (c *Checks) compareQueue(s *Site, list []message.ReservationLine) error {
	now, want := s.Host.Now(), map[string]bool{}
	var errs []error
	for _, l := range list {
		over := !l.Slot.End.After(now)
		switch l.State {
		case "sold":
			want[l.ID] = !over
		case "reserving", "held", "countersigned":
			errs = append(errs, fmt.Errorf("%s has %s %s when everything is over", s.Host.Name, l.ID, l.State))
		}
		if got := s.Cluster.Slots()[l.ID]; want[l.ID] && got.Cores < l.Slot.Cores {
			errs = append(errs, fmt.Errorf("%s: %s is sold with %d cores, the batch system has %d", s.Host.Name, l.ID, l.Slot.Cores, got.Cores))
		}
	}
	for _, id := range sorted(s.Cluster.Slots()) {
		if !want[id] && s.Cluster.Slots()[id].End.After(now) {
			errs = append(errs, fmt.Errorf("%s: the batch system has %s, which the journal does not have as sold", s.Host.Name, id))
		}
	}
	return errors.Join(errs...)
}

// comparePaid holds a site's account against what it sold.
func (c *Checks) comparePaid(s *Site) error {
	var want protocol.Credits
	for id, b := range c.bundles {
		if c.bank.outcome[id] != protocol.OutcomeSettled {
			continue
		}
		for _, u := range b.Units {
			switch {
			case u.Seller != s.Host.ID() || c.m.cfg.Barter: // its group earns
			case b.Mode == protocol.ModeOnReservation:
				want += u.Cost - c.bank.refunds[refundKey{id, u.Unit}]
			default:
				want += c.jobs.paid[refundKey{id, u.Unit}]
			}
		}
	}
	if got := c.bank.balanceOf(s.Host.ID()); got != want {
		return fmt.Errorf("%s has been paid %s for what cost %s", s.Host.Name, got, want)
	}
	return nil
}

package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/bank/voids"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Checks holds a market against the invariants, record by record as they become durable.
// It reads only durable records and delivered messages, and decodes them itself. It never
// asks a role for its opinion, except for how much it keeps in memory.
//
// Each part owns the books of one subject, and reads those of the others.
type Checks struct {
	audit *audit
	bank  *bankBook
	sites *siteBook
	jobs  *jobBook

	entries  *bankChecks
	claims   *siteChecks
	honest   *honestChecks
	billing  *jobChecks
	bids     *bidChecks
	votes    *voteChecks
	launches *launchChecks
	sizes    *sizeChecks
	receipts *receiptChecks
	orders   *orderChecks
	sweeps   *sweepChecks
}

func newChecks() *Checks {
	a := &audit{going: map[string]bool{}, counts: map[string]int{}}
	bank, sites := newBankBook(), newSiteBook()
	jobs := &jobBook{open: map[refundKey]openUnit{}, paid: map[refundKey]protocol.Credits{}, endedAt: map[refundKey]time.Time{}}
	c := &Checks{audit: a, bank: bank, sites: sites, jobs: jobs}
	c.honest = newHonestChecks(a, bank, sites)
	c.billing = &jobChecks{audit: a, jobs: jobs, bank: bank, sites: sites, honest: c.honest}
	c.claims = &siteChecks{audit: a, sites: sites, bank: bank, jobs: jobs, signed: c.honest}
	c.bids = &bidChecks{audit: a, going: map[auctionKey]*bidding{}}
	c.votes = &voteChecks{audit: a, going: map[auctionKey]map[protocol.AgentID]*asking{}}
	c.sizes = &sizeChecks{audit: a}
	c.orders = newOrderChecks(a, bank)
	c.receipts = &receiptChecks{audit: a, bank: bank, entry: map[protocol.ContractID]uint64{}}
	c.sweeps = &sweepChecks{audit: a, bank: bank, sites: sites, honest: c.honest, by: map[string]*sweepBook{}, of: map[protocol.ContractID]string{}}
	c.launches = &launchChecks{audit: a, bank: bank, sites: sites, begun: map[launchKey]int{}, sweeps: c.sweeps}
	c.entries = &bankChecks{audit: a, bank: bank, sites: sites, billing: c.billing, signed: c.honest, sweeps: c.sweeps}
	return c
}

// Open makes a market with Checks that watch it from the beginning.
func Open(cast *Cast, cfg Config, more ...sim.Observer) (*Market, *Checks) {
	c := newChecks()
	m := New(cast, cfg, append([]sim.Observer{c}, more...)...)
	c.audit.m = m
	for _, s := range m.sites {
		s.Batch.JobBegins(func(job message.Job, now time.Time) {
			if !c.receipts.restored {
				c.launches.begins(s, job, now)
			}
		})
	}
	c.tick()
	return m, c
}

// Violations are those found so far, at most maxViolations.
func (c *Checks) Violations() []Violation { return c.audit.violations }

// Durable checks what a host has saved.
func (c *Checks) Durable(h *sim.Host, records []protocol.Record) {
	if c.audit.m != nil && !c.audit.m.honest(h.ID()) {
		return // a dishonest agent may write what it likes into its journal
	}
	for _, r := range records {
		c.orders.saved(h, r)
	}
	if c.receipts.restored {
		c.receipts.saved(h, records)
		return
	}
	for _, r := range records {
		c.sweeps.saved(h, r)
		switch r.Table {
		case ledger.TableLines, ledger.TableEntries, voids.Table:
			c.entries.saved(r)
		case reserve.TableDeals, reserve.TableSales, reserve.TableVoids:
			c.claims.saved(h, r)
		case user.TablePurchases:
			c.userSaved(h, r)
		case reserve.TableBundles:
			c.honest.userSigned(h, r)
			c.sweeps.signed(h, r.Key)
		}
	}
}

// Delivered checks what a host is about to receive.
func (c *Checks) Delivered(to, from *sim.Host, m protocol.Message) {
	c.audit.counts[Credentials]++
	if p, ok := m.Body.(message.Proposal); ok {
		c.bids.arrives(to, from, m.Conversation, p)
	}
	c.votes.arrives(to, from, m)
	if !from.Trusted() {
		c.audit.check(Credentials, false, "%s accepts %s from %s, which has no valid certificate", to.Name, m.Body.Kind(), from.Name)
	}
}

// Said passes on what a host sends.
func (c *Checks) Said(from *sim.Host, m protocol.Message) {
	c.receipts.said(from, m)
	c.bids.said(from, m)
	c.votes.said(from, m)
	if s, ok := m.Body.(message.LaunchStatus); ok && !c.receipts.restored {
		c.billing.delivers(from.ID(), s)
	}
}

// Rewound passes on that a host's disk was lost or restored from an older copy.
func (c *Checks) Rewound(h *sim.Host) {
	c.claims.rewound(h)
	c.receipts.rewound(h)
	c.orders.rewound(h)
}

// Sent does nothing: only what was durable before counts.
func (c *Checks) Sent(*sim.Host, protocol.Message) {}

// Refused counts what could not be opened, as it should be.
func (c *Checks) Refused(*sim.Host, protocol.AgentID, error) { c.audit.counts[Credentials]++ }

// Going counts the purchases that are not over, the undecided contracts, and the
// reservations that are neither sold nor free, as the journals have them, and the
// operator's orders without an answer.
func (c *Checks) Going() int { return len(c.audit.going) + c.audit.m.clerks.going }

// userSaved compares a user's view of a purchase with the bank's.
func (c *Checks) userSaved(h *sim.Host, r protocol.Record) {
	if r.Value == nil {
		return
	}
	row, err := user.ReadRow(r.Value)
	c.audit.check(Decided, err == nil, "%s: purchase %s cannot be read: %v", h.Name, r.Key, err)
	p := row.View()
	c.audit.follow("purchase "+h.Name+" "+r.Key, !user.Over(p.State))
	switch p.State {
	case user.StateSettled:
		c.audit.check(AllOrNothing, c.bank.outcome[p.Contract] == protocol.OutcomeSettled,
			"%s believes that %s is settled; the bank says %q", h.Name, p.ID, c.bank.outcome[p.Contract])
	case user.StateVoid:
		c.audit.check(AllOrNothing, c.bank.outcome[p.Contract] != protocol.OutcomeSettled,
			"%s believes that %s is void; the bank settled it", h.Name, p.ID)
	}
}

// tickPeriod is the time between checks of time-dependent invariants.
const tickPeriod = 30 * time.Second

// tick checks holds and queues now, and again after tickPeriod.
func (c *Checks) tick() {
	c.sizes.check()
	if !c.receipts.restored {
		c.claims.checkHolds()
		c.bids.checkEnded()
	}
	c.audit.m.World.After(tickPeriod, c.tick)
}

// Finish checks a market that has settled: everything is over, and journals, batch systems
// and ledger agree.
func (c *Checks) Finish() {
	for _, h := range c.audit.m.World.Hosts() {
		c.audit.check(Decided, h.Up() || c.audit.m.World.Leader(h.ID()) != h, "%s does not come up", h.Name)
	}
	c.receipts.finish()
	c.orders.finish()
	for _, u := range c.audit.m.users {
		c.finishUser(u)
	}
	if c.receipts.restored {
		return
	}
	c.finishLedger()
	c.honest.finish()
	c.billing.finish()
	c.bids.finish()
	for _, s := range c.audit.m.sites {
		c.finishSite(s)
	}
	for _, u := range c.audit.m.users {
		c.launches.finish(u)
		c.sweeps.finish(u)
	}
}

// finishUser checks that every purchase of a user is over, as its bank decided.
func (c *Checks) finishUser(u *User) {
	err := u.Host.Disk().Each(user.TablePurchases, func(id string, value []byte) error {
		row, err := user.ReadRow(value)
		if err != nil {
			return err
		}
		c.audit.check(Decided, user.Over(row.Purchase.State), "purchase %s is still %s", id, row.Purchase.State)
		return c.finishPurchase(u, row.View())
	})
	c.audit.check(Decided, err == nil, "%s: %v", u.Host.Name, err)
}

func (c *Checks) finishPurchase(u *User, p message.Purchase) error {
	if p.Contract == "" {
		return nil
	}
	c.billing.finishUnits(p)
	o := c.bank.outcome[p.Contract]
	settled := p.State == user.StateSettled
	if p.State == user.StateCancelled && o == protocol.OutcomeSettled {
		return nil // bought, then every unit cancelled
	}
	c.audit.check(AllOrNothing, settled == (o == protocol.OutcomeSettled), "purchase %s of %s is %s, and %q at the bank", p.ID, u.Host.Name, p.State, o)
	return nil
}

// finishLedger audits the bank from its entries.
func (c *Checks) finishLedger() {
	report, err := ledger.Audit(c.audit.m.bank.Disk())
	c.audit.check(Money, err == nil, "the bank's ledger cannot be audited: %v", err)
	if err == nil {
		c.audit.check(Money, len(report.Bad) == 0, "the bank's ledger: %q", report.Bad)
	}
	for _, id := range slices.Sorted(maps.Keys(c.sites.signed)) {
		c.audit.check(Decided, c.bank.outcome[id] != "", "contract %.8s of %s is not decided", id, c.sites.bundles[id].User)
	}
}

// finishSite compares a site's journal with its batch system and its account.
func (c *Checks) finishSite(s *Site) {
	role, ok := s.Host.Role().(*resource.Role)
	if !ok {
		return // reported as down
	}
	errs := []error{c.compareQueue(s, role.Reservations()), c.comparePaid(s)}
	c.audit.check(CoresOnce, errs[0] == nil, "%v", errs[0])
	c.audit.check(Money, errs[1] == nil, "%v", errs[1])
}

// givenBack reports whether a site has given back a slot that it overbooked, and is asking for it
// again before it begins.
func givenBack(s *Site, l message.ReservationLine) bool {
	row, _ := s.Host.Disk().Get(resource.TablePromises, l.ID)
	var p struct {
		Given bool   `json:"given"`
		End   string `json:"end"`
	}
	return json.Unmarshal(row, &p) == nil && p.Given && p.End == "" && l.Slot.Start.After(s.Host.Now())
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
			errs = append(errs, fmt.Errorf("%s has %s %s after everything is over", s.Host.Name, l.ID, l.State))
		}
		if got := s.Cluster.Slots()[l.ID]; want[l.ID] && got.Cores < l.Slot.Cores && !givenBack(s, l) {
			errs = append(errs, fmt.Errorf("%s: %s is sold with %d cores, the batch system has %d", s.Host.Name, l.ID, l.Slot.Cores, got.Cores))
		}
	}
	for _, id := range sorted(s.Cluster.Slots()) {
		if !want[id] && s.Cluster.Slots()[id].End.After(now) {
			errs = append(errs, fmt.Errorf("%s: the batch system has %s, which is not sold in the journal", s.Host.Name, id))
		}
	}
	return errors.Join(errs...)
}

// comparePaid compares a site's account with what it sold.
func (c *Checks) comparePaid(s *Site) error {
	var want protocol.Credits
	for id, b := range c.sites.bundles {
		if c.bank.outcome[id] != protocol.OutcomeSettled {
			continue
		}
		for _, u := range b.Units {
			switch {
			case u.Seller != s.Host.ID() || c.audit.m.cfg.Barter: // its group earns
			case b.Mode == protocol.ModeOnReservation:
				want += u.Cost - c.bank.refunds[refundKey{id, u.Unit}]
			default:
				want += c.jobs.paid[refundKey{id, u.Unit}]
			}
		}
	}
	if got := c.bank.balanceOf(s.Host.ID()); got != want {
		return fmt.Errorf("%s has been paid %s for sales of %s", s.Host.Name, got, want)
	}
	return nil
}

package market

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

// siteChecks checks the sellers' journals; it owns siteBook.
type siteChecks struct {
	audit  *audit
	sites  *siteBook
	bank   *bankBook
	jobs   *jobBook
	signed *honestChecks
}

// siteBook is a second copy of the sellers' claims and contracts, made from their journals.
type siteBook struct {
	claims    map[protocol.AgentID]map[string]*claim
	forgotten map[claimKey]*claim              // countersigned, but not in the journal that was restored
	ended     map[claimKey]protocol.ContractID // whose slots were given back, also in a journal that is lost
	rewound   map[protocol.AgentID]bool
	held      map[claimKey]*claim
	bundles   map[protocol.ContractID]protocol.Bundle
	signed    map[protocol.ContractID]bool // not only prepared
	deals     map[string][]claimKey        // by deal of a site
}

func newSiteBook() *siteBook {
	return &siteBook{
		claims: map[protocol.AgentID]map[string]*claim{}, forgotten: map[claimKey]*claim{}, ended: map[claimKey]protocol.ContractID{}, rewound: map[protocol.AgentID]bool{},
		held: map[claimKey]*claim{}, bundles: map[protocol.ContractID]protocol.Bundle{}, signed: map[protocol.ContractID]bool{}, deals: map[string][]claimKey{},
	}
}

// claimKey is a reservation of a seller.
type claimKey struct {
	seller protocol.AgentID
	id     string
}

// claim is a reservation as its seller's journal has it.
type claim struct {
	state     string
	contract  protocol.ContractID // for which it was countersigned
	slot      protocol.Slot
	cost      protocol.Credits
	holdUntil time.Time
	stale     bool // in a restored journal, though released since
}

func (c *claim) describe() string {
	if c == nil {
		return "not in the journal"
	}
	return c.state
}

// binds reports whether the seller's cores are promised.
func (c *claim) binds() bool {
	return !c.stale && (c.state == "held" || c.state == "prepared" || c.state == "countersigned" || c.state == "sold")
}

// siteDeal and siteSale are the parts of a seller's rows that this package reads.
type siteDeal struct {
	User     protocol.AgentID    `json:"user"`
	Contract protocol.ContractID `json:"contract"`
	Silent   bool                `json:"silent"` // perhaps confirmed
	Claims   []siteClaim         `json:"claims"`
}

type siteClaim struct {
	ID        string        `json:"id"`
	Item      protocol.Item `json:"item"`
	State     string        `json:"state"`
	Why       string        `json:"why"`
	HoldUntil time.Time     `json:"hold_until"`
	Refund    *refundNote   `json:"refund"`
	Job       *refundNote   `json:"job"` // only its presence is read, too
	Vacant    bool          `json:"vacant"`
}

// claim converts a row of a deal.
func (b *siteBook) claim(row siteClaim, d siteDeal) *claim {
	state := row.State
	if d.Silent && state == "held" && slices.ContainsFunc(b.bundles[d.Contract].Units, func(u protocol.BundleUnit) bool { return u.Reservation == row.ID }) {
		state = "prepared"
	}
	if (row.Job != nil || row.Vacant) && state == "sold" {
		state = "reported"
	}
	now := &claim{state: state, slot: row.Item.Slot, cost: row.Item.Cost, holdUntil: row.HoldUntil}
	if named(state) {
		now.contract = d.Contract
	}
	return now
}

type siteSale struct {
	Bundle protocol.Bundle `json:"bundle"`
}

// saved checks a record of a seller.
func (c *siteChecks) saved(h *sim.Host, r protocol.Record) {
	if r.Value == nil {
		if r.Table == reserve.TableDeals {
			c.dealGone(h.Name + " " + r.Key)
		}
		return
	}
	if r.Table == reserve.TableVoids {
		c.voided(h, r)
		return
	}
	if r.Table == reserve.TableSales {
		var s siteSale
		err := json.Unmarshal(r.Value, &s)
		c.audit.check(AllOrNothing, err == nil, "%s: sale %.8s: %v", h.Name, r.Key, err)
		id := protocol.ContractID(r.Key)
		c.sites.bundles[id] = s.Bundle
		c.bank.lapse(id, s.Bundle)
		return
	}
	var d siteDeal
	err := json.Unmarshal(r.Value, &d)
	c.audit.check(AllOrNothing, err == nil, "%s: deal %s: %v", h.Name, r.Key, err)
	if d.Contract != "" && !d.Silent {
		c.sites.signed[d.Contract] = true
		c.audit.follow("contract "+string(d.Contract), c.bank.outcome[d.Contract] == "")
	}
	var keys []claimKey
	for _, row := range d.Claims {
		key, now := claimKey{h.ID(), row.ID}, c.sites.claim(row, d)
		keys = append(keys, key)
		before := c.sites.claims[key.seller][key.id]
		c.setClaim(key, now)
		if before == nil || before.state != now.state {
			c.claimChanged(h, key, before, now)
		}
	}
	c.sites.deals[h.Name+" "+r.Key] = keys
	c.signed.siteGives(h.ID(), d)
}

// mostVoid limits what a seller's journal keeps of a void contract: the bank's receipt.
const mostVoid = 4 << 10

// voided checks that of a void contract only the receipt is left. Records of one Output
// become durable together, the deletion of the contract before its receipt.
func (c *siteChecks) voided(h *sim.Host, r protocol.Record) {
	sale, err := h.Disk().Get(reserve.TableSales, r.Key)
	c.audit.check(Bounded, err == nil && len(sale) == 0 && len(r.Value) <= mostVoid,
		"%s keeps %d bytes of void contract %.8s, and %d of its receipt; the limit is %d", h.Name, len(sale), r.Key, len(r.Value), mostVoid)
}

// setClaim records a claim as its journal has it now.
func (c *siteChecks) setClaim(key claimKey, now *claim) {
	if c.sites.claims[key.seller] == nil {
		c.sites.claims[key.seller] = map[string]*claim{}
	}
	before := c.sites.claims[key.seller][key.id]
	now.stale = now.stale || before != nil && before.stale && now.state == before.state
	c.sites.claims[key.seller][key.id] = now
	delete(c.sites.held, key)
	c.audit.follow("claim "+string(key.seller)+" "+key.id, now.state == "reserving" || now.state == "held" || now.state == "prepared" || now.state == "countersigned")
	if now.state == "held" {
		c.sites.held[key] = now
	}
}

// named reports whether a claim in this state belongs to its deal's contract. A freed one
// may have belonged to it or to none.
func named(state string) bool {
	return state == "reported" || state == "prepared" || state == "countersigned" || state == "sold" || state == "broken" || state == "cancelled"
}

// dealGone forgets the claims of a deal that its seller deleted.
func (c *siteChecks) dealGone(deal string) {
	for _, k := range c.sites.deals[deal] {
		c.signed.forget(k)
		if claim := c.sites.claims[k.seller][k.id]; claim != nil {
			f := c.sites.forgotten[k]       // sold, as its site learns from the bank
			ended := c.sites.ended[k] != "" // what a restored journal has of it does not count
			c.audit.check(AllOrNothing, ended || f != nil && c.promised(k, f) || claim.state != "held" && claim.state != "prepared" && claim.state != "countersigned" || !claim.slot.End.After(c.audit.m.World.Now()),
				"%s forgets %s, which is %s", k.seller.Name(), k.id, claim.state)
			delete(c.sites.claims[k.seller], k.id)
			delete(c.sites.held, k)
			c.audit.follow("claim "+string(k.seller)+" "+k.id, false)
		}
	}
	delete(c.sites.deals, deal)
}

// claimChanged checks a change of a claim's state against the bank's decision.
func (c *siteChecks) claimChanged(h *sim.Host, key claimKey, before, now *claim) {
	was := protocol.ContractID("")
	if before != nil {
		was = before.contract
	}
	switch now.state {
	case "prepared", "countersigned":
		c.audit.check(AllOrNothing, was == "" || was == now.contract, "%s countersigns %s twice", h.Name, key.id)
		c.signed.checkAgreed(h, key.id, now)
	case "sold":
		o := c.bank.outcome[now.contract]
		c.audit.check(AllOrNothing, o == protocol.OutcomeSettled, "%s sells %s for contract %.8s, which is %q", h.Name, key.id, now.contract, o)
	case "freed":
		c.freed(h, key, before, was)
		c.freedForgotten(h, key)
	}
	if now.state == "reported" {
		c.sites.ended[key] = now.contract
	}
	if now.binds() && (before == nil || !before.binds()) {
		c.checkCores(h, key, now)
	}
	if now.state != "held" || before == nil || before.state != "prepared" { // not withdrawn
		now.contract = firstOf(now.contract, was)
	}
}

func firstOf(a, b protocol.ContractID) protocol.ContractID {
	if a != "" {
		return a
	}
	return b
}

// freed checks that a countersigned slot is freed only after its bank voided the contract.
// One that was only prepared may be freed until it is settled, and not be settled later.
func (c *siteChecks) freed(h *sim.Host, key claimKey, before *claim, contract protocol.ContractID) {
	if before == nil || contract == "" {
		return
	}
	o := c.bank.outcome[contract]
	over := !before.slot.End.After(h.Now()) // the slot's own end frees the cores
	c.audit.check(AllOrNothing, o == protocol.OutcomeVoid || (over || before.state == "prepared") && o != protocol.OutcomeSettled,
		"%s frees %s, countersigned for contract %.8s, which is %q", h.Name, key.id, contract, o)
}

// checkCores checks that a new promise and the existing ones fit into the machine.
func (c *siteChecks) checkCores(h *sim.Host, key claimKey, now *claim) {
	site := c.audit.m.site(h)
	if site == nil || !now.slot.End.After(c.audit.m.World.Now()) { // a restored journal has slots that are over
		return
	}
	for _, at := range []time.Time{now.slot.Start, now.slot.End.Add(-1)} {
		sum := 0
		for id, other := range c.sites.claims[key.seller] {
			again := other.contract != "" && c.sites.ended[claimKey{key.seller, id}] == other.contract // its cores are asked for once more
			if other.binds() && !again && !at.Before(other.slot.Start) && at.Before(other.slot.End) {
				sum += other.slot.Cores
			}
		}
		sum += c.forgottenCores(key, at)
		c.audit.check(CoresOnce, sum <= site.Cluster.Cores, "%s promises %d of %d cores at %s with %s", h.Name, sum, site.Cluster.Cores, at.Format(time.RFC3339), key.id)
	}
}

// holdSlack is how long after its hold-until a slot may stay held in the journal of a site
// that is up and whose batch system answers at once; beyond it counts its slowest answer.
const holdSlack = 6 * time.Minute

// checkHolds checks that nothing is held beyond its hold-until. Exceptions, until a while after the
// faults have stopped, are slots in doubt and those of a seller that has restarted, until the bank
// answers that they were not sold.
func (c *siteChecks) checkHolds() {
	keys := slices.SortedFunc(maps.Keys(c.sites.held), func(a, b claimKey) int {
		return cmp.Or(cmp.Compare(a.seller, b.seller), cmp.Compare(a.id, b.id))
	})
	for _, k := range keys {
		h, claim := c.audit.m.World.Host(k.seller.Name()), c.sites.held[k]
		slack := holdSlack
		if site := c.audit.m.site(h); site != nil {
			slack += site.Batch.Slowest()
		}
		if !h.Up() || h.Uptime() < slack {
			continue
		}
		lately := !c.audit.m.calm || c.audit.m.World.Now().Sub(c.audit.m.calmed) < slack
		if r, ok := h.Role().(*resource.Role); ok && lately && r.Unsure(k.id) {
			continue
		}
		late := h.Now().Sub(claim.holdUntil)
		c.audit.check(HoldsEnd, late < slack, "%s holds %s %s longer than it promised", h.Name, k.id, late)
	}
}

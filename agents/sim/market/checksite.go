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

// claimKey is a reservation of a seller.
type claimKey struct {
	seller protocol.AgentID
	id     string
}

// claim is a reservation as its seller's journal has it.
type claim struct {
	state     string
	contract  protocol.ContractID // that it was countersigned for
	slot      protocol.Slot
	cost      protocol.Credits
	holdUntil time.Time
	stale     bool // in a journal that was put back, and let go or given back since
}

func (c *claim) describe() string {
	if c == nil {
		return "not in the journal"
	}
	return c.state
}

// binds reports whether the seller's cores are promised.
func (c *claim) binds() bool {
	return !c.stale && (c.state == "held" || c.state == "countersigned" || c.state == "sold")
}

// siteDeal and siteSale are what this package reads of a seller's rows.
type siteDeal struct {
	User     protocol.AgentID    `json:"user"`
	Contract protocol.ContractID `json:"contract"`
	Claims   []siteClaim         `json:"claims"`
}

type siteClaim struct {
	ID        string        `json:"id"`
	Item      protocol.Item `json:"item"`
	State     string        `json:"state"`
	HoldUntil time.Time     `json:"hold_until"`
	Refund    *refundNote   `json:"refund"`
	Job       *refundNote   `json:"job"` // likewise: that it is there
}

// claim is the row as it is checked, of a deal with this contract.
func (row siteClaim) claim(contract protocol.ContractID) *claim {
	state := row.State
	if row.Job != nil && state == "sold" {
		state = "reported"
	}
	now := &claim{state: state, slot: row.Item.Slot, cost: row.Item.Cost, holdUntil: row.HoldUntil}
	if named(state) {
		now.contract = contract
	}
	return now
}

type siteSale struct {
	Bundle protocol.Bundle `json:"bundle"`
}

// siteSaved takes a record of a seller's.
func (c *Checks) siteSaved(h *sim.Host, r protocol.Record) {
	if r.Value == nil {
		if r.Table == reserve.TableDeals {
			c.dealGone(h.Name + " " + r.Key)
		}
		return
	}
	if r.Table == reserve.TableSales {
		var s siteSale
		err := json.Unmarshal(r.Value, &s)
		c.check(AllOrNothing, err == nil, "%s: sale %.8s: %v", h.Name, r.Key, err)
		id := protocol.ContractID(r.Key)
		c.bundles[id] = s.Bundle
		c.follow("contract "+r.Key, c.bank.outcome[id] == "")
		return
	}
	var d siteDeal
	err := json.Unmarshal(r.Value, &d)
	c.check(AllOrNothing, err == nil, "%s: deal %s: %v", h.Name, r.Key, err)
	var keys []claimKey
	for _, row := range d.Claims {
		key, now := claimKey{h.ID(), row.ID}, row.claim(d.Contract)
		keys = append(keys, key)
		before := c.claims[key.seller][key.id]
		c.setClaim(key, now)
		if before == nil || before.state != now.state {
			c.claimChanged(h, key, before, now)
		}
	}
	c.deals[h.Name+" "+r.Key] = keys
	c.siteGives(h.ID(), d)
}

// setClaim keeps a claim as its journal has it now.
func (c *Checks) setClaim(key claimKey, now *claim) {
	if c.claims[key.seller] == nil {
		c.claims[key.seller] = map[string]*claim{}
	}
	before := c.claims[key.seller][key.id]
	now.stale = now.stale || before != nil && before.stale && now.state == before.state
	c.claims[key.seller][key.id] = now
	delete(c.held, key)
	c.follow("claim "+string(key.seller)+" "+key.id, now.state == "reserving" || now.state == "held" || now.state == "countersigned")
	if now.state == "held" {
		c.held[key] = now
	}
}

// named reports whether a claim in this state is for its deal's contract. One
// that is freed may have been for it, or for nothing.
func named(state string) bool {
	return state == "reported" || state == "countersigned" || state == "sold" || state == "broken" || state == "cancelled"
}

// dealGone forgets the claims of a deal that its seller put away.
func (c *Checks) dealGone(deal string) {
	for _, k := range c.deals[deal] {
		for _, held := range c.loss.held {
			delete(held, k)
		}
		if claim := c.claims[k.seller][k.id]; claim != nil {
			f := c.forgotten[k] // its bank has told that it is sold
			c.check(AllOrNothing, f != nil && c.promised(k, f) || claim.state != "held" && claim.state != "countersigned" || !claim.slot.End.After(c.m.World.Now()),
				"%s forgets %s, which is %s", k.seller.Name(), k.id, claim.state)
			delete(c.claims[k.seller], k.id)
			delete(c.held, k)
			c.follow("claim "+string(k.seller)+" "+k.id, false)
		}
	}
	delete(c.deals, deal)
}

// claimChanged holds a step of a claim against what its bank decided.
func (c *Checks) claimChanged(h *sim.Host, key claimKey, before, now *claim) {
	was := protocol.ContractID("")
	if before != nil {
		was = before.contract
	}
	switch now.state {
	case "countersigned":
		c.check(AllOrNothing, was == "" || was == now.contract, "%s countersigns %s twice", h.Name, key.id)
		c.checkAgreed(h, key.id, now)
	case "sold":
		o := c.bank.outcome[now.contract]
		c.check(AllOrNothing, o == protocol.OutcomeSettled, "%s sells %s for contract %.8s, which is %q", h.Name, key.id, now.contract, o)
	case "freed":
		c.freed(h, key, before, was)
		c.freedForgotten(h, key)
	}
	if now.binds() && (before == nil || !before.binds()) {
		c.checkCores(h, key, now)
	}
	now.contract = firstOf(now.contract, was)
}

func firstOf(a, b protocol.ContractID) protocol.ContractID {
	if a != "" {
		return a
	}
	return b
}

// freed: what was countersigned is freed only when its bank voided it.
func (c *Checks) freed(h *sim.Host, key claimKey, before *claim, contract protocol.ContractID) {
	if before == nil || contract == "" {
		return
	}
	o := c.bank.outcome[contract]
	over := !before.slot.End.After(h.Now()) // the slot's own end frees the cores
	c.check(AllOrNothing, o == protocol.OutcomeVoid || over && o != protocol.OutcomeSettled,
		"%s frees %s, countersigned for contract %.8s, which is %q", h.Name, key.id, contract, o)
}

// checkCores: a new promise and the standing ones fit into the machine.
func (c *Checks) checkCores(h *sim.Host, key claimKey, now *claim) {
	site := c.m.site(h)
	if site == nil {
		return
	}
	for _, at := range []time.Time{now.slot.Start, now.slot.End.Add(-1)} {
		sum := 0
		for _, other := range c.claims[key.seller] {
			if other.binds() && !at.Before(other.slot.Start) && at.Before(other.slot.End) {
				sum += other.slot.Cores
			}
		}
		sum += c.forgottenCores(key, at)
		c.check(CoresOnce, sum <= site.Cluster.Cores, "%s promises %d of %d cores at %s with %s", h.Name, sum, site.Cluster.Cores, at.Format(time.RFC3339), key.id)
	}
}

// holdSlack is how long after its hold-until a held slot may still be in the
// journal of a site that is up, and whose batch system answers: a poll, and the
// slowest answer.
const holdSlack = 6 * time.Minute

// checkHolds: nothing is held for longer than was said, unless it is in doubt, or
// its seller has restarted since, and no bank could tell it yet that it was not
// sold. When faults have stopped, banks can.
func (c *Checks) checkHolds() {
	keys := slices.SortedFunc(maps.Keys(c.held), func(a, b claimKey) int {
		return cmp.Or(cmp.Compare(a.seller, b.seller), cmp.Compare(a.id, b.id))
	})
	for _, k := range keys {
		h, claim := c.m.World.Host(k.seller.Name()), c.held[k]
		if !h.Up() || h.Uptime() < holdSlack {
			continue
		}
		if r, ok := h.Role().(*resource.Role); ok && !c.m.calm && r.Unsure(k.id) {
			continue
		}
		late := h.Now().Sub(claim.holdUntil)
		c.check(HoldsEnd, late < holdSlack, "%s holds %s %s longer than it said", h.Name, k.id, late)
	}
}

package market

import (
	"encoding/json"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

// Rewound takes what a site's journal has after it was lost, or put back to an older
// copy. What it had promised by contract stays promised, whatever it remembers.
func (c *Checks) Rewound(h *sim.Host) {
	if c.m == nil || c.m.site(h) == nil {
		return
	}
	c.rewound[h.ID()] = true
	for id, claim := range c.claims[h.ID()] {
		key := claimKey{h.ID(), id}
		if claim.contract != "" && claim.binds() {
			c.forgotten[key] = claim
		}
		delete(c.held, key)
		c.follow("claim "+string(key.seller)+" "+key.id, false)
	}
	before := c.claims[h.ID()]
	delete(c.claims, h.ID())
	err := h.Disk().Each(reserve.TableDeals, func(key string, value []byte) error {
		var d siteDeal
		if err := json.Unmarshal(value, &d); err != nil {
			return err
		}
		c.deals[h.Name+" "+key] = c.setClaims(h.ID(), d, before)
		return nil
	})
	c.check(AllOrNothing, err == nil, "%s: its older journal: %v", h.Name, err)
}

// setClaims takes the claims of a deal as an older journal has them; before are those
// that the newer one had.
func (c *Checks) setClaims(site protocol.AgentID, d siteDeal, before map[string]*claim) []claimKey {
	var keys []claimKey
	for _, row := range d.Claims {
		key := claimKey{site, row.ID}
		keys = append(keys, key)
		now := row.claim(d.Contract)
		now.stale = before[row.ID] == nil || !before[row.ID].binds()
		c.setClaim(key, now)
		if f := c.forgotten[key]; f != nil && f.contract == now.contract && now.binds() {
			delete(c.forgotten, key)
		}
	}
	return keys
}

// promised reports whether a claim that its site forgot is sold, its unit has not
// ended, and its slot is not over.
func (c *Checks) promised(key claimKey, f *claim) bool {
	if c.bank.outcome[f.contract] != protocol.OutcomeSettled || !f.slot.End.After(c.m.World.Now()) {
		return false
	}
	for _, u := range c.bundles[f.contract].Units {
		if u.Seller == key.seller && u.Reservation == key.id {
			k := refundKey{f.contract, u.Unit}
			_, ended := c.jobs.paid[k]
			return !ended && !c.bank.refunded[k]
		}
	}
	return false
}

// promise is what the seller of a unit has promised by its contract, even if it has
// forgotten that.
func (c *Checks) promise(id protocol.ContractID, u protocol.BundleUnit) *claim {
	if f := c.forgotten[claimKey{u.Seller, u.Reservation}]; f != nil && f.contract == id {
		return f
	}
	return c.claims[u.Seller][u.Reservation]
}

// forgottenCores are those that a site sold for an instant, beside a new claim, and
// has in its journal no more.
func (c *Checks) forgottenCores(now claimKey, at time.Time) int {
	sum := 0
	for key, f := range c.forgotten {
		standing := c.claims[key.seller][key.id]
		if key.seller != now.seller || key == now || standing != nil && standing.binds() || !c.promised(key, f) {
			continue
		}
		if !at.Before(f.slot.Start) && at.Before(f.slot.End) {
			sum += f.slot.Cores
		}
	}
	return sum
}

// freedForgotten: what is sold is not freed, though the journal has it as held only.
func (c *Checks) freedForgotten(h *sim.Host, key claimKey) {
	f := c.forgotten[key]
	c.check(AllOrNothing, f == nil || !c.promised(key, f), "%s frees %s, which it has sold and forgotten", h.Name, key.id)
}

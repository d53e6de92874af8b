package market

import (
	"encoding/json"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

// rewound reads a site's journal again after it was lost or restored from an older copy.
// The site's contracts still bind it, whatever it remembers.
func (c *siteChecks) rewound(h *sim.Host) {
	if c.audit.m == nil || c.audit.m.site(h) == nil {
		return
	}
	c.sites.rewound[h.ID()] = true
	for id, claim := range c.sites.claims[h.ID()] {
		key := claimKey{h.ID(), id}
		if claim.contract != "" && claim.binds() {
			c.sites.forgotten[key] = claim
		}
		delete(c.sites.held, key)
		c.audit.follow("claim "+string(key.seller)+" "+key.id, false)
	}
	before := c.sites.claims[h.ID()]
	delete(c.sites.claims, h.ID())
	err := h.Disk().Each(reserve.TableDeals, func(key string, value []byte) error {
		var d siteDeal
		if err := json.Unmarshal(value, &d); err != nil {
			return err
		}
		c.sites.deals[h.Name+" "+key] = c.setClaims(h.ID(), d, before)
		return nil
	})
	c.audit.check(AllOrNothing, err == nil, "%s: its older journal: %v", h.Name, err)
}

// setClaims records the claims of a deal as an older journal has them; before are those of
// the newer one.
func (c *siteChecks) setClaims(site protocol.AgentID, d siteDeal, before map[string]*claim) []claimKey {
	var keys []claimKey
	for _, row := range d.Claims {
		key := claimKey{site, row.ID}
		keys = append(keys, key)
		now := c.sites.claim(row, d)
		now.stale = before[row.ID] == nil || !before[row.ID].binds()
		c.setClaim(key, now)
		if f := c.sites.forgotten[key]; f != nil && f.contract == now.contract && now.binds() {
			delete(c.sites.forgotten, key)
		}
	}
	return keys
}

// promised reports whether a claim that its site forgot is sold and neither its unit nor
// its slot has ended.
func (c *siteChecks) promised(key claimKey, f *claim) bool {
	if c.bank.outcome[f.contract] != protocol.OutcomeSettled || !f.slot.End.After(c.audit.m.World.Now()) {
		return false
	}
	for _, u := range c.sites.bundles[f.contract].Units {
		if u.Seller == key.seller && u.Reservation == key.id {
			k := refundKey{f.contract, u.Unit}
			_, ended := c.jobs.paid[k]
			return !ended && !c.bank.refunded[k]
		}
	}
	return false
}

// promise is the claim by which a seller has promised a unit, even if it has forgotten it.
func (b *siteBook) promise(id protocol.ContractID, u protocol.BundleUnit) *claim {
	if f := b.forgotten[claimKey{u.Seller, u.Reservation}]; f != nil && f.contract == id {
		return f
	}
	return b.claims[u.Seller][u.Reservation]
}

// forgottenCores counts the cores that a site has sold for an instant and forgotten, apart
// from a new claim.
func (c *siteChecks) forgottenCores(now claimKey, at time.Time) int {
	sum := 0
	for key, f := range c.sites.forgotten {
		current := c.sites.claims[key.seller][key.id]
		if key.seller != now.seller || key == now || current != nil && current.binds() || !c.promised(key, f) {
			continue
		}
		if !at.Before(f.slot.Start) && at.Before(f.slot.End) {
			sum += f.slot.Cores
		}
	}
	return sum
}

// freedForgotten checks that a sold slot is not freed, even if the journal has forgotten the sale.
func (c *siteChecks) freedForgotten(h *sim.Host, key claimKey) {
	f := c.sites.forgotten[key]
	c.audit.check(AllOrNothing, f == nil || !c.promised(key, f), "%s frees %s, which it has sold and then forgotten", h.Name, key.id)
}

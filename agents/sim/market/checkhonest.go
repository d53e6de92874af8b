package market

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/reserve"
)

// honestBook is what honest parties have bound themselves to, as their own disks
// have it: nothing else may cost them anything.
type honestBook struct {
	signed  map[protocol.ContractID]protocol.Bundle // by honest users
	bundles map[string]protocol.ContractID          // of a user's conversation, so that each is opened once
	given   map[refundKey]bool                      // units whose refund an honest site has signed
	spent   map[protocol.AgentID]protocol.Credits   // by honest users, less refunds
	held    map[holding]map[claimKey]heldUnit       // what dishonest users hold at honest sites
	asked   map[refundKey]askedFor                  // what each signed unit was asked for
	paidFor map[askedFor]refundKey                  // and which unit is paid for it now
}

// askedFor is a unit of a request, as its owner gave it.
type askedFor struct {
	user  protocol.AgentID
	order string
	unit  int
}

// heldUnit is one that is held and not bought.
type heldUnit struct {
	slot  protocol.Slot
	waits bool // for the batch system
}

// holding is one user's at one site.
type holding struct{ site, user protocol.AgentID }

func newHonestBook() honestBook {
	return honestBook{
		signed: map[protocol.ContractID]protocol.Bundle{}, bundles: map[string]protocol.ContractID{}, given: map[refundKey]bool{},
		spent: map[protocol.AgentID]protocol.Credits{}, held: map[holding]map[claimKey]heldUnit{},
		asked: map[refundKey]askedFor{}, paidFor: map[askedFor]refundKey{},
	}
}

// userSigned takes the record of a bundle that an honest user has signed.
func (c *Checks) userSigned(h *sim.Host, r protocol.Record) {
	key := h.Name + " " + r.Key
	if r.Value == nil || c.loss.bundles[key] != "" {
		return
	}
	s, err := reserve.ReadSaved(r.Value)
	if err == nil {
		var v contract.Verified
		if v, err = contract.OpenBundle(s.Bundle, c.m.Cast.Trust, s.SignedAt); err == nil {
			c.loss.bundles[key], c.loss.signed[v.ID] = v.ID, v.Bundle
			c.checkAsked(h, r.Key, v.ID, v.Bundle)
		}
	}
	c.check(HonestLoseNothing, err == nil, "%s: its bundle of %s: %v", h.Name, r.Key, err)
}

// siteGives takes the refunds that an honest site has signed, and what dishonest
// users hold there.
func (c *Checks) siteGives(site protocol.AgentID, d siteDeal) {
	at := holding{site, d.User}
	for _, row := range d.Claims {
		key := claimKey{site, row.ID}
		if row.Refund != nil {
			c.loss.given[refundKey{d.Contract, row.Item.Unit}] = true
		}
		if c.m.honest(d.User) {
			continue
		}
		if c.loss.held[at] == nil {
			c.loss.held[at] = map[claimKey]heldUnit{}
		}
		if row.State == "reserving" || row.State == "held" || row.State == "countersigned" {
			c.loss.held[at][key] = heldUnit{row.Item.Slot, row.State == "reserving"}
		} else {
			delete(c.loss.held[at], key)
		}
	}
	c.boundHolds(at)
}

// boundHolds: what a dishonest user holds and has not bought stays within the
// site's limit for one buyer.
//
// A restart of the site forgives what was held and let go before it, and a doubt
// (of what was countersigned) outlasts any hold; so only what is held now counts.
func (c *Checks) boundHolds(at holding) {
	n, waits, seconds := len(c.loss.held[at]), 0, int64(0)
	for _, u := range c.loss.held[at] {
		seconds += int64(u.slot.Cores) * int64(u.slot.Wall()/time.Second)
		if u.waits {
			waits++
		}
	}
	if n == 0 {
		return
	}
	cores := c.m.site(c.m.World.Leader(at.site)).Config.Properties.Cores
	most := int64(cores) * holdSeconds
	c.check(HonestLoseNothing, n <= protocol.MaxUnits && seconds <= most,
		"%s holds %d units of %s at once, %d core-seconds; at most %d and %d", at.user.Name(), n, at.site.Name(), seconds, protocol.MaxUnits, most)
	c.check(HonestLoseNothing, waits <= resource.DefaultReserves,
		"%s has %d units of %s wait for its batch system, at most %d", at.user.Name(), waits, at.site.Name(), resource.DefaultReserves)
}

// holdSeconds is for how long one buyer may hold a whole machine within an hour: a
// week, and what is forgiven of it during the longest hold.
const holdSeconds = 7 * 24 * 3600 * 7 / 6

// settleHonest: an honest user pays for what it signed, and that much; an honest
// site is paid for each unit that it sells.
func (c *Checks) settleHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		switch {
		case c.isUser(who):
			b, signed := c.loss.signed[e.Contract]
			c.check(HonestLoseNothing, signed && b.User == who && leg.Amount == -b.Total,
				"%s pays %s for contract %.8s; it signed one of %s: %v", who.Name(), -leg.Amount, e.Contract, b.Total, signed)
			c.loss.spent[who] -= leg.Amount
		case c.isSite(who):
			b, due := c.bundles[e.Contract], protocol.Credits(0)
			for _, u := range b.Units {
				if u.Seller == who {
					due += u.Cost
				}
			}
			c.check(HonestLoseNothing, leg.Amount == due && due > 0, "%s is paid %s for contract %.8s; it sold for %s", who.Name(), leg.Amount, e.Contract, due)
		}
	}
}

// refundHonest: an honest site gives money back only if it has signed that.
func (c *Checks) refundHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		switch {
		case c.isUser(who):
			c.loss.spent[who] -= leg.Amount
		case c.isSite(who):
			c.check(HonestLoseNothing, c.loss.given[refundKey{e.Contract, e.Unit}],
				"%s pays back unit %d of contract %.8s, and has not signed that", who.Name(), e.Unit, e.Contract)
		}
	}
}

// otherEntry: nothing else costs an honest party anything.
func (c *Checks) otherEntry(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		if leg.Amount < 0 && (c.isUser(who) || c.isSite(who)) {
			c.check(HonestLoseNothing, false, "entry %d costs %s %s", e.Number, who.Name(), -leg.Amount)
		}
	}
}

func (c *Checks) honestEntry(e ledger.Entry) {
	switch e.Kind {
	case ledger.KindSettle:
		c.settleHonest(e)
	case ledger.KindRefund:
		c.refundHonest(e)
	case ledger.KindComplete:
		c.completeHonest(e)
	default:
		c.otherEntry(e)
	}
}

func (c *Checks) isUser(id protocol.AgentID) bool { return c.m.parties[id] == partyUser }
func (c *Checks) isSite(id protocol.AgentID) bool { return c.m.parties[id] == partySite }

// finishHonest: an honest user that paid has every unit that an honest site sold
// it, or the money of it back; and has otherwise what it had.
func (c *Checks) finishHonest() {
	for i, u := range c.m.users {
		id := u.Host.ID()
		got, want := c.bank.balanceOf(id), c.m.cfg.credit(i)-c.loss.spent[id]
		c.check(HonestLoseNothing, got == want, "%s has %s, and should have %s", u.Host.Name, got, want)
	}
	for _, id := range slices.Sorted(maps.Keys(c.loss.signed)) {
		if c.bank.outcome[id] == protocol.OutcomeSettled {
			c.finishBought(id, c.loss.signed[id])
		}
	}
}

func (c *Checks) finishBought(id protocol.ContractID, b protocol.Bundle) {
	for _, u := range b.Units {
		if !c.isSite(u.Seller) || !u.Slot.End.After(c.m.World.Now().Add(time.Hour)) {
			continue // bought from who may not keep its word, or over, by any clock
		}
		claim := c.claims[u.Seller][u.Reservation]
		sold := claim != nil && (claim.state == "sold" || claim.state == "reported") && claim.contract == id
		c.check(HonestLoseNothing, sold || c.bank.refunded[refundKey{id, u.Unit}],
			"%s paid for unit %d of contract %.8s; it is %s at %s, and not refunded", b.User.Name(), u.Unit, id, claim.describe(), u.Seller.Name())
	}
}

// refundNote is what this package reads of a site's signed refund: that it is
// there.
type refundNote = json.RawMessage

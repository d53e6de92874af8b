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

// honestChecks owns what honest parties have bound themselves to, as their own disks have
// it: nothing else may cost them anything.
type honestChecks struct {
	audit   *audit
	bank    *bankBook
	sites   *siteBook
	signed  map[protocol.ContractID]protocol.Bundle // by honest users
	bundles map[string]protocol.ContractID          // by user and conversation, so that each is opened once
	given   map[refundKey]bool                      // units for which an honest site has signed a refund
	spent   map[protocol.AgentID]protocol.Credits   // by honest users, minus refunds
	held    map[holding]map[claimKey]heldUnit       // held by dishonest users at honest sites
	lapsed  map[holding]int64                       // core-seconds that they let lapse
	asked   map[refundKey]askedFor                  // the requested unit that each signed unit is for
	paidFor map[askedFor]refundKey                  // and the unit that is paid for it now
}

// askedFor is a unit of an owner's order.
type askedFor struct {
	user  protocol.AgentID
	order string
	unit  int
}

// heldUnit is a unit that is held and not bought.
type heldUnit struct {
	slot  protocol.Slot
	waits bool // on the batch system
}

func (u heldUnit) coreSeconds() int64 { return int64(u.slot.Cores) * int64(u.slot.Wall()/time.Second) }

// holding names a user and the site where it holds units.
type holding struct{ site, user protocol.AgentID }

func newHonestChecks(a *audit, bank *bankBook, sites *siteBook) *honestChecks {
	return &honestChecks{
		audit: a, bank: bank, sites: sites,
		signed: map[protocol.ContractID]protocol.Bundle{}, bundles: map[string]protocol.ContractID{}, given: map[refundKey]bool{},
		spent: map[protocol.AgentID]protocol.Credits{}, held: map[holding]map[claimKey]heldUnit{}, lapsed: map[holding]int64{},
		asked: map[refundKey]askedFor{}, paidFor: map[askedFor]refundKey{},
	}
}

// userSigned checks the record of a bundle that an honest user has signed.
func (c *honestChecks) userSigned(h *sim.Host, r protocol.Record) {
	key := h.Name + " " + r.Key
	if r.Value == nil || c.bundles[key] != "" {
		return
	}
	s, err := reserve.ReadSaved(r.Value)
	if err == nil {
		var v contract.Verified
		if v, err = contract.OpenBundle(s.Bundle, c.audit.m.Cast.Trust, s.SignedAt); err == nil {
			c.bundles[key], c.signed[v.ID] = v.ID, v.Bundle
			c.checkAsked(h, r.Key, v.ID, v.Bundle)
		}
	}
	c.audit.check(HonestLoseNothing, err == nil, "%s: its bundle of %s: %v", h.Name, r.Key, err)
}

// forget drops a unit that its site no longer has.
func (c *honestChecks) forget(k claimKey) {
	for _, held := range c.held {
		delete(held, k)
	}
}

// siteGives records the refunds that an honest site has signed, and the units that
// dishonest users hold there.
func (c *honestChecks) siteGives(site protocol.AgentID, d siteDeal) {
	at := holding{site, d.User}
	for _, row := range d.Claims {
		key := claimKey{site, row.ID}
		if row.Refund != nil {
			c.given[refundKey{d.Contract, row.Item.Unit}] = true
		}
		if c.audit.m.honest(d.User) {
			continue
		}
		if c.held[at] == nil {
			c.held[at] = map[claimKey]heldUnit{}
		}
		if row.State == "reserving" || row.State == "held" || row.State == "countersigned" {
			c.held[at][key] = heldUnit{row.Item.Slot, row.State == "reserving"}
			continue
		}
		if u, known := c.held[at][key]; known && !u.waits && row.Why == "hold-until passed" {
			c.lapsed[at] += u.coreSeconds()
		}
		delete(c.held[at], key)
	}
	c.boundHolds(at)
}

// boundHolds checks that the unbought holds of a dishonest user stay within the site's
// limits for one buyer: at once, and, if it has no money for a voucher, in the long run. A
// site whose disk was restored may have forgotten.
func (c *honestChecks) boundHolds(at holding) {
	n, waits, seconds := len(c.held[at]), 0, int64(0)
	for _, u := range c.held[at] {
		seconds += u.coreSeconds()
		if u.waits {
			waits++
		}
	}
	if n == 0 {
		return
	}
	cores := c.audit.m.site(c.audit.m.World.Leader(at.site)).Config.Properties.Cores
	c.audit.check(HonestLoseNothing, n <= protocol.MaxUnits, "%s holds %d units of %s at once; the limit is %d", at.user.Name(), n, at.site.Name(), protocol.MaxUnits)
	penniless := slices.ContainsFunc(c.audit.m.rogues, func(r rogue) bool { return r.host.ID() == at.user && r.money == 0 })
	if most := int64(cores) * holdSeconds; penniless && !c.sites.rewound[at.site] {
		c.audit.check(HonestLoseNothing, seconds <= most, "%s holds %d core-seconds of %s at once; the limit is %d", at.user.Name(), seconds, at.site.Name(), most)
		most += int64(float64(most) * c.audit.m.World.Elapsed().Hours() / 24)
		c.audit.check(HonestLoseNothing, c.lapsed[at] <= most, "%s has let %d core-seconds of %s lapse; the limit is %d by now", at.user.Name(), c.lapsed[at], at.site.Name(), most)
	}
	c.audit.check(HonestLoseNothing, waits <= resource.DefaultReserves,
		"%s has %d units of %s waiting for its batch system; the limit is %d", at.user.Name(), waits, at.site.Name(), resource.DefaultReserves)
}

// holdSeconds limits how many seconds of a whole machine a buyer without money may hold for
// a minute, and again every day: an hour, and as much again because clocks differ.
const holdSeconds = 2 * 3600

// settleHonest checks that an honest user pays exactly for what it signed, and that an
// honest site is paid for each unit that it sells.
func (c *honestChecks) settleHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		switch {
		case c.audit.isUser(who):
			b, signed := c.signed[e.Contract]
			c.audit.check(HonestLoseNothing, signed && b.User == who && leg.Amount == -b.Total,
				"%s pays %s for contract %.8s; it signed one of %s: %v", who.Name(), -leg.Amount, e.Contract, b.Total, signed)
			c.spent[who] -= leg.Amount
		case c.audit.isSite(who):
			b, due := c.sites.bundles[e.Contract], protocol.Credits(0)
			for _, u := range b.Units {
				if u.Seller == who {
					due += u.Cost
				}
			}
			c.audit.check(HonestLoseNothing, leg.Amount == due && due > 0, "%s is paid %s for contract %.8s; it sold for %s", who.Name(), leg.Amount, e.Contract, due)
		}
	}
}

// refundHonest checks that an honest site pays back only what it has signed.
func (c *honestChecks) refundHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		switch {
		case c.audit.isUser(who):
			c.spent[who] -= leg.Amount
		case c.audit.isSite(who):
			c.audit.check(HonestLoseNothing, c.given[refundKey{e.Contract, e.Unit}],
				"%s pays back unit %d of contract %.8s, and has not signed that", who.Name(), e.Unit, e.Contract)
		}
	}
}

// completeHonest checks that an honest user pays at most what it signed.
func (c *honestChecks) completeHonest(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		if !c.audit.isUser(who) {
			continue
		}
		c.spent[who] -= leg.Amount
		if leg.Held >= 0 {
			continue // it earns as a member of its group
		}
		b, signed := c.signed[e.Contract]
		i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == e.Unit })
		c.audit.check(HonestLoseNothing, signed && b.User == who && i >= 0 && -leg.Held <= b.Units[i].Cost,
			"%s pays for unit %d of contract %.8s, and has not signed that", who.Name(), e.Unit, e.Contract)
	}
}

// otherEntry checks that no other kind of entry costs an honest party anything.
func (c *honestChecks) otherEntry(e ledger.Entry) {
	for _, leg := range e.Legs {
		who := c.bank.lines[leg.Line].account
		if leg.Amount < 0 && (c.audit.isUser(who) || c.audit.isSite(who)) {
			c.audit.check(HonestLoseNothing, false, "entry %d costs %s %s", e.Number, who.Name(), -leg.Amount)
		}
	}
}

func (c *honestChecks) entry(e ledger.Entry) {
	switch e.Kind {
	case ledger.KindSettle, ledger.KindDraw:
		c.settleHonest(e)
	case ledger.KindRefund:
		c.refundHonest(e)
	case ledger.KindComplete:
		c.completeHonest(e)
	case ledger.KindExchange, ledger.KindTransfer: // orderChecks holds it against the order
	default:
		c.otherEntry(e)
	}
}

// finish checks that an honest user has each unit that it paid an honest site for, or its
// money back, and no other change of its balance.
func (c *honestChecks) finish() {
	for i, u := range c.audit.m.users {
		id := u.Host.ID()
		got, want := c.bank.balanceOf(id), c.audit.m.cfg.credit(i)-c.spent[id]
		c.audit.check(HonestLoseNothing, got == want, "%s has %s, and should have %s", u.Host.Name, got, want)
	}
	for _, id := range slices.Sorted(maps.Keys(c.signed)) {
		if c.bank.outcome[id] == protocol.OutcomeSettled {
			c.finishBought(id, c.signed[id])
		}
	}
}

func (c *honestChecks) finishBought(id protocol.ContractID, b protocol.Bundle) {
	for _, u := range b.Units {
		if !c.audit.isSite(u.Seller) || !u.Slot.End.After(c.audit.m.World.Now().Add(time.Hour)) {
			continue // the seller may be dishonest, or the slot is over by any clock
		}
		claim := c.sites.claims[u.Seller][u.Reservation]
		sold := claim != nil && (claim.state == "sold" || claim.state == "reported") && claim.contract == id
		c.audit.check(HonestLoseNothing, sold || c.bank.refunded[refundKey{id, u.Unit}],
			"%s paid for unit %d of contract %.8s; it is %s at %s, and not refunded", b.User.Name(), u.Unit, id, claim.describe(), u.Seller.Name())
	}
}

// refundNote is a site's signed refund. This package checks only that it is there.
type refundNote = json.RawMessage

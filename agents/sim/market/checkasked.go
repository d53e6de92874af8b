package market

import (
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// checkAsked: an honest user signs what its owner asked for and nothing else:
// each unit once, as large and as long, in its time and within its price. A set
// that breaks price or deadline was approved by the owner, and its row says so.
func (c *Checks) checkAsked(h *sim.Host, order string, id protocol.ContractID, b protocol.Bundle) {
	row, err := user.ReadRow(h.Disk().Get(user.TablePurchases, order))
	if err == nil {
		err = asked(row.Order.Document, row.Purchase, b)
		c.noteAsked(h.ID(), order, row.Order.Replaces, id, b)
	}
	c.check(HonestLoseNothing, err == nil, "%s signs for %s what was not asked: %v", h.Name, order, err)
}

// noteAsked notes which unit of its owner's order each unit of a contract is for.
func (c *Checks) noteAsked(who protocol.AgentID, order string, q *message.Replaces, id protocol.ContractID, b protocol.Bundle) {
	for _, u := range b.Units {
		what := askedFor{who, order, u.Unit}
		if q != nil {
			what = askedFor{who, q.First, q.Unit}
		}
		c.loss.asked[refundKey{id, u.Unit}] = what
	}
}

// paysAsked: what an owner asked for once is paid once, and again only when the
// money is back.
func (c *Checks) paysAsked(id protocol.ContractID) {
	for _, u := range c.loss.signed[id].Units {
		key := refundKey{id, u.Unit}
		what, noted := c.loss.asked[key]
		before, paid := c.loss.paidFor[what]
		c.check(HonestLoseNothing, !noted || !paid || c.bank.refunded[before],
			"%s pays for unit %d of %s in contract %.8s, and has it in contract %.8s", what.user.Name(), what.unit, what.order, id, before.contract)
		c.loss.paidFor[what] = key
	}
}

func asked(document []byte, p message.Purchase, b protocol.Bundle) error {
	doc, err := rfql.Parse(document, p.Created)
	if err != nil {
		return err
	}
	requests := doc.Requests()
	if len(b.Units) != len(requests) {
		return fmt.Errorf("%d units of %d", len(b.Units), len(requests))
	}
	for i, u := range b.Units { // in order of unit
		if u.Unit != requests[i].Unit {
			return fmt.Errorf("unit %d in the place of unit %d", u.Unit, requests[i].Unit)
		}
		if err := askedUnit(requests[i], len(p.Violations) > 0, u); err != nil {
			return fmt.Errorf("unit %d: %w", u.Unit, err)
		}
	}
	return nil
}

// askedUnit holds a unit against its request.
func askedUnit(q rfql.Request, approved bool, u protocol.BundleUnit) error {
	cost, err := protocol.Cost(u.Price, u.Slot.Cores, u.Slot.Wall())
	switch {
	case err != nil:
		return err
	case u.Slot.Cores != q.Cores || u.Slot.Wall() < q.Wall || u.Slot.Start.Before(q.NotBefore):
		return fmt.Errorf("%d cores for %s from %s; asked were %d for %s from %s", u.Slot.Cores, u.Slot.Wall(), u.Slot.Start.Format(time.RFC3339), q.Cores, q.Wall, q.NotBefore.Format(time.RFC3339))
	case u.Cost <= 0 || u.Cost > cost:
		return fmt.Errorf("costs %s, and by its price %s", u.Cost, cost)
	case !approved && (u.Price > q.Price || u.Slot.End.After(q.End)):
		return fmt.Errorf("until %s at %s; asked was until %s at %s", u.Slot.End.Format(time.RFC3339), u.Price, q.End.Format(time.RFC3339), q.Price)
	}
	return nil
}

// checkAgreed: an honest site signs for a reservation what it holds, and for the
// money that it named.
func (c *Checks) checkAgreed(h *sim.Host, id string, now *claim) {
	for _, u := range c.bundles[now.contract].Units {
		if u.Reservation != id {
			continue
		}
		same := u.Cost == now.cost && u.Slot.Cores == now.slot.Cores && u.Slot.Start.Equal(now.slot.Start) && u.Slot.End.Equal(now.slot.End)
		c.check(HonestLoseNothing, same, "%s signs %s for %s; it was held for %s", h.Name, id, u.Cost, now.cost)
		return
	}
	c.check(HonestLoseNothing, false, "%s signs contract %.8s, which does not name %s", h.Name, now.contract, id)
}

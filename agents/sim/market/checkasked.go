package market

import (
	"fmt"
	"time"

	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// checkAsked checks that an honest user signs exactly what its owner ordered: each unit
// once, with its cores and length, in its time and within its price. If a set exceeds
// price or deadline, its row must say that the owner approved it.
func (c *honestChecks) checkAsked(h *sim.Host, order string, id protocol.ContractID, b protocol.Bundle) {
	value, _ := h.Disk().Get(user.TablePurchases, order) // it is in memory: no error
	row, err := user.ReadRow(value)
	if err == nil {
		err = asked(row.Order.Document, row.View(), b)
		c.note(h.ID(), order, row.Order.Replaces, id, b)
	}
	c.audit.check(HonestLoseNothing, err == nil, "%s signs for %s what was not ordered: %v", h.Name, order, err)
}

// note records which unit of its owner's order each unit of a contract is for.
func (c *honestChecks) note(who protocol.AgentID, order string, q *message.Replaces, id protocol.ContractID, b protocol.Bundle) {
	for _, u := range b.Units {
		what := askedFor{who, order, u.Unit}
		if q != nil {
			what = askedFor{who, q.First, q.Unit}
		}
		c.asked[refundKey{id, u.Unit}] = what
	}
}

// paysAsked checks that an ordered unit is paid once, and again only after a refund.
func (c *honestChecks) paysAsked(id protocol.ContractID) {
	for _, u := range c.signed[id].Units {
		key := refundKey{id, u.Unit}
		what, noted := c.asked[key]
		before, paid := c.paidFor[what]
		c.audit.check(HonestLoseNothing, !noted || !paid || c.bank.refunded[before],
			"%s pays for unit %d of %s in contract %.8s, and has it in contract %.8s", what.user.Name(), what.unit, what.order, id, before.contract)
		c.paidFor[what] = key
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
			return fmt.Errorf("found unit %d, want unit %d", u.Unit, requests[i].Unit)
		}
		if err := askedUnit(requests[i], len(p.Violations) > 0, u); err != nil {
			return fmt.Errorf("unit %d: %w", u.Unit, err)
		}
	}
	return nil
}

// askedUnit compares a unit with its request.
func askedUnit(q rfql.Request, approved bool, u protocol.BundleUnit) error {
	cost, err := protocol.Cost(u.Price, u.Slot.Cores, u.Slot.Wall())
	switch {
	case err != nil:
		return err
	case u.Slot.Cores != q.Cores || u.Slot.Wall() < q.Wall || u.Slot.Start.Before(q.NotBefore):
		return fmt.Errorf("%d cores for %s from %s; ordered were %d for %s from %s", u.Slot.Cores, u.Slot.Wall(), u.Slot.Start.Format(time.RFC3339), q.Cores, q.Wall, q.NotBefore.Format(time.RFC3339))
	case u.Cost <= 0 || u.Cost > cost:
		return fmt.Errorf("costs %s, but %s by its price", u.Cost, cost)
	case !approved && (u.Price > q.Price || u.Slot.End.After(q.End)):
		return fmt.Errorf("until %s at %s; ordered was until %s at %s", u.Slot.End.Format(time.RFC3339), u.Price, q.End.Format(time.RFC3339), q.Price)
	}
	return nil
}

// checkAgreed checks that an honest site signs for a slot that it holds, at the cost that
// it offered.
func (c *honestChecks) checkAgreed(h *sim.Host, id string, now *claim) {
	for _, u := range c.sites.bundles[now.contract].Units {
		if u.Reservation != id {
			continue
		}
		same := u.Cost == now.cost && queue.Equal(u.Slot, now.slot)
		c.audit.check(HonestLoseNothing, same, "%s signs %s for %s; it was held for %s", h.Name, id, u.Cost, now.cost)
		return
	}
	c.audit.check(HonestLoseNothing, false, "%s signs contract %.8s, which does not name %s", h.Name, now.contract, id)
}

package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// offer copies an offer that could become part of a bundle: possible slots,
// prices above zero, no unit twice, and a cost not above that of its items.
func (c *coder) offer(m *protocol.Offer, w *wire.Offer) {
	c.offerHead(m, w)
	list(c, "items", &m.Items, &w.Items, protocol.MaxUnits, (*coder).item)
	c.checkItems(m)
}

// offerHead copies an offer without its items.
func (c *coder) offerHead(m *protocol.Offer, w *wire.Offer) {
	c.id("offer ID", &m.ID, &w.Id, protocol.MaxName)
	c.price("cost of an offer", &m.Cost, &w.Cost)
	c.needed("valid-until", &m.ValidUntil, &w.ValidUntil)
	c.name("group", &m.Group, &w.Group, protocol.MaxName)
	same(c, &m.Voucher, &w.Voucher)
	number(c, "odds", &m.Queued, &w.Queued, 0, int64(protocol.MaxOdds))
}

func (c *coder) item(m *protocol.Item, w *wire.Item) {
	c.unit(&m.Unit, &w.Unit)
	c.slot(&m.Slot, &w.Start, &w.End, &w.Cores, &w.Nodes)
	c.price("price", &m.Price, &w.Price)
	c.price("cost", &m.Cost, &w.Cost)
	c.amount("least payment", &m.Least, &w.Least)
	if c.err != nil {
		return
	}
	most, err := protocol.Cost(m.Price, m.Slot.Cores, m.Slot.Wall())
	if err != nil {
		c.malformed("cost of unit %d: %w", m.Unit, err)
	} else if m.Cost > most {
		c.fail(protocol.CodeMismatch, "cost of unit %d: %s, want at most %s", m.Unit, m.Cost, most)
	} else if m.Least > m.Cost/2 {
		c.fail(protocol.CodeMismatch, "least payment of unit %d: %s, want at most half of %s", m.Unit, m.Least, m.Cost)
	}
}

// checkItems checks how the items of an offer go together.
func (c *coder) checkItems(o *protocol.Offer) {
	if len(o.Items) == 0 {
		c.malformed("offer %q has no items", o.ID)
	}
	if c.err != nil {
		return // a unit may be out of range
	}
	var seen [protocol.MaxUnits]bool
	sum := protocol.Credits(0)
	for i := range o.Items {
		x := &o.Items[i]
		if seen[x.Unit] {
			c.malformed("offer %q has unit %d twice", o.ID, x.Unit)
		}
		seen[x.Unit] = true
		var err error
		if sum, err = sum.Add(x.Cost); err != nil {
			c.malformed("offer %q: %w", o.ID, err)
			return
		}
	}
	if o.Cost > sum {
		c.fail(protocol.CodeMismatch, "offer %q costs %s, its items only %s", o.ID, o.Cost, sum)
	}
}

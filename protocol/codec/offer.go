package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

func offerToWire(o protocol.Offer) *wire.Offer {
	w := &wire.Offer{
		Id: o.ID, Items: make([]*wire.Item, len(o.Items)), Cost: int64(o.Cost),
		ValidUntil: nanos(o.ValidUntil), Group: o.Group, Voucher: o.Voucher, Queued: int64(o.Queued),
	}
	for i, x := range o.Items {
		w.Items[i] = &wire.Item{
			Unit: int64(x.Unit), Start: nanos(x.Slot.Start), End: nanos(x.Slot.End), Cores: int64(x.Slot.Cores),
			Price: int64(x.Price), Cost: int64(x.Cost),
		}
	}
	return w
}

// offer reads an offer that could become part of a bundle: possible slots,
// prices above zero, no unit twice, and no cost above that of its parts.
func (r *reader) offer(w *wire.Offer) protocol.Offer {
	o := r.offerHead(w)
	o.Items = list(r, "items", w.GetItems(), protocol.MaxUnits, r.item)
	r.checkItems(o)
	return o
}

// offerHead reads an offer without its items.
func (r *reader) offerHead(w *wire.Offer) protocol.Offer {
	return protocol.Offer{
		ID:         r.id("offer", w.GetId()),
		Cost:       r.price("cost of an offer", w.GetCost()),
		ValidUntil: r.needed("valid-until", w.GetValidUntil()),
		Group:      r.name("group", w.GetGroup(), protocol.MaxName),
		Voucher:    w.GetVoucher(),
		Queued:     r.odds(w.GetQueued()),
	}
}

// odds are a probability in millionths, plus one; 0: not told.
func (r *reader) odds(n int64) protocol.Odds {
	if n < 0 || n > int64(protocol.MaxOdds) {
		r.malformed("odds %d: want 0..%d", n, protocol.MaxOdds)
		return 0
	}
	return protocol.Odds(n)
}

func (r *reader) item(w *wire.Item) protocol.Item {
	x := protocol.Item{
		Unit:  r.unit(w.Unit),
		Slot:  r.slot(w.Start, w.End, w.Cores),
		Price: r.price("price", w.Price),
		Cost:  r.price("cost", w.Cost),
	}
	if r.err != nil {
		return x
	}
	most, err := protocol.Cost(x.Price, x.Slot.Cores, x.Slot.Wall())
	if err != nil {
		r.malformed("cost of unit %d: %w", x.Unit, err)
	} else if x.Cost > most {
		r.fail(protocol.CodeMismatch, "cost of unit %d: %s, want at most %s", x.Unit, x.Cost, most)
	}
	return x
}

// checkItems checks how the items of an offer go together.
func (r *reader) checkItems(o protocol.Offer) {
	if len(o.Items) == 0 {
		r.malformed("offer %q: no items", o.ID)
	}
	if r.err != nil {
		return // a unit may be out of range
	}
	var seen [protocol.MaxUnits]bool
	sum := protocol.Credits(0)
	for _, x := range o.Items {
		if seen[x.Unit] {
			r.malformed("offer %q: unit %d twice", o.ID, x.Unit)
		}
		seen[x.Unit] = true
		var err error
		if sum, err = sum.Add(x.Cost); err != nil {
			r.malformed("offer %q: %w", o.ID, err)
			return
		}
	}
	if o.Cost > sum {
		r.fail(protocol.CodeMismatch, "offer %q costs %s, and its items %s", o.ID, o.Cost, sum)
	}
}

package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// setSoldBody is setBody for what is asked when a seller's journal was lost.
func setSoldBody(e *wire.Envelope, body protocol.Body) bool {
	switch b := body.(type) {
	case message.SoldQuery:
		e.Body = &wire.Envelope_SoldQuery{SoldQuery: &wire.SoldQuery{Ends: nanos(b.Ends), After: string(b.After)}}
	case message.SoldList:
		e.Body = &wire.Envelope_SoldList{SoldList: soldListToWire(b)}
	case message.BundleQuery:
		e.Body = &wire.Envelope_BundleQuery{BundleQuery: &wire.BundleQuery{Contract: string(b.Contract)}}
	case message.BundleCopy:
		e.Body = &wire.Envelope_BundleCopy{BundleCopy: &wire.BundleCopy{Bundle: b.Bundle.DER}}
	default:
		return false
	}
	return true
}

func (r *reader) soldBody(e *wire.Envelope) protocol.Body {
	switch b := e.Body.(type) {
	case *wire.Envelope_SoldQuery:
		q := message.SoldQuery{Ends: r.needed("ends", b.SoldQuery.GetEnds())}
		if b.SoldQuery.GetAfter() != "" {
			q.After = r.contract(b.SoldQuery.GetAfter())
		}
		return q
	case *wire.Envelope_SoldList:
		w := b.SoldList
		return message.SoldList{Sold: list(r, "sold", w.GetSold(), message.MaxSold, r.sold), More: w.GetMore(), Complete: w.GetComplete()}
	case *wire.Envelope_BundleQuery:
		return message.BundleQuery{Contract: r.contract(b.BundleQuery.GetContract())}
	case *wire.Envelope_BundleCopy:
		return message.BundleCopy{Bundle: document(r, "bundle", b.BundleCopy.GetBundle(), r.signed.bundle)}
	}
	return nil
}

func soldListToWire(s message.SoldList) *wire.SoldList {
	w := &wire.SoldList{Sold: make([]*wire.Sold, len(s.Sold)), More: s.More, Complete: s.Complete}
	for i, x := range s.Sold {
		sold := &wire.Sold{Contract: string(x.Contract), User: string(x.User), Conversation: x.Conversation, Ends: nanos(x.Ends)}
		for _, u := range x.Units {
			sold.Units = append(sold.Units, &wire.SoldUnit{Unit: int64(u.Unit), Reservation: u.Reservation, Start: nanos(u.Slot.Start), End: nanos(u.Slot.End), Cores: int64(u.Slot.Cores)})
		}
		w.Sold[i] = sold
	}
	return w
}

func (r *reader) sold(w *wire.Sold) protocol.Sold {
	return protocol.Sold{
		Contract: r.contract(w.GetContract()), User: r.agent("user", w.GetUser()),
		Conversation: r.token("conversation", w.GetConversation()), Ends: r.needed("ends", w.GetEnds()),
		Units: list(r, "units", w.GetUnits(), protocol.MaxUnits, r.soldUnit),
	}
}

func (r *reader) soldUnit(w *wire.SoldUnit) protocol.SoldUnit {
	return protocol.SoldUnit{
		Unit:        r.unit(w.GetUnit()),
		Reservation: r.name("reservation", w.GetReservation(), protocol.MaxReservation),
		Slot:        r.slot(w.GetStart(), w.GetEnd(), w.GetCores()),
	}
}

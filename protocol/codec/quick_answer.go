package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// What sellers answer, read as readQuick does.

func (r *quickReader) quickProposal() (m message.Proposal) {
	round, items := int64(0), 0
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			round = r.number()
		case 2:
			m.Offers = append(room(m.Offers, &r.parts), r.quickOffer())
			items += len(m.Offers[len(m.Offers)-1].Items)
		case 3:
			m.Capacity = append(room(m.Capacity, &r.parts), r.quickSpan())
		case 4:
			m.Refusals = append(room(m.Refusals, &r.parts), r.quickReason())
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	m.Round = r.check.round(round)
	r.fits(items, protocol.MaxItems)
	r.fits(len(m.Offers), protocol.MaxOffers)
	r.fits(len(m.Capacity), protocol.MaxSpans)
	r.fits(len(m.Refusals), protocol.MaxReasons)
	return m
}

func (r *quickReader) quickOffer() protocol.Offer {
	var w wire.Offer
	var items []protocol.Item
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Id = r.string()
		case 2:
			items = append(room(items, &r.parts), r.quickItem())
		case 3:
			w.Cost = r.number()
		case 4:
			w.ValidUntil = r.fixed()
		case 5:
			w.Group = r.string()
		case 6:
			w.Voucher = r.number() != 0
		case 7:
			w.Queued = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	r.fits(len(items), protocol.MaxUnits)
	o := r.check.offerHead(&w)
	o.Items = items
	if r.good() {
		r.check.checkItems(o)
	}
	return o
}

func (r *quickReader) quickItem() protocol.Item {
	var w wire.Item
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Unit = r.number()
		case 2:
			w.Start = r.fixed()
		case 3:
			w.End = r.fixed()
		case 4:
			w.Cores = r.number()
		case 5:
			w.Price = r.number()
		case 6:
			w.Cost = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.check.item(&w)
}

func (r *quickReader) quickSpan() protocol.Span {
	var w wire.Slot
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Start = r.fixed()
		case 2:
			w.End = r.fixed()
		case 3:
			w.Cores = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.check.span(&w)
}

func (r *quickReader) quickRefusal() (m message.Refusal) {
	round := int64(0)
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			round = r.number()
		case 2:
			m.Reasons = append(room(m.Reasons, &r.parts), r.quickReason())
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	m.Round = r.check.round(round)
	r.fits(len(m.Reasons), protocol.MaxReasons)
	return m
}

func (r *quickReader) quickReason() protocol.Reason {
	var w wire.Reason
	var hints []protocol.Hint
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Code = r.string()
		case 2:
			w.Unit = protowire.DecodeZigZag(uint64(r.number()))
		case 3:
			w.Term = r.string()
		case 4:
			w.Want = r.string()
		case 5:
			w.Have = r.string()
		case 6:
			w.Asks = r.number()
		case 7:
			w.Start = r.fixed()
		case 8:
			w.Free = r.number()
		case 9:
			w.Note = r.string()
		case 10:
			hints = append(room(hints, &r.parts), r.quickHint())
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	r.fits(len(hints), protocol.MaxHints)
	x := r.check.reasonHead(&w)
	x.Hints = hints
	return x
}

func (r *quickReader) quickHint() protocol.Hint {
	var w wire.Hint
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Start = r.fixed()
		case 2:
			w.Cores = r.number()
		case 3:
			w.Price = r.number()
		default:
			r.quickTariff(&w)
		}
	}
	r.leave(outer)
	return r.check.hint(&w)
}

func (r *quickReader) quickTariff(w *wire.Hint) {
	switch r.num {
	case 4:
		w.TimeLimit = r.number()
	case 5:
		w.PLo = r.number()
	case 6:
		w.PHi = r.number()
	case 7:
		w.PTop = r.number()
	case 8:
		w.QLo = r.number()
	case 9:
		w.QHi = r.number()
	case 10:
		w.QTop = r.number()
	case 11:
		w.Prepay = r.number()
	default:
		r.strange = true
	}
}

package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

func acceptanceToWire(a message.Acceptance) *wire.Acceptance {
	return &wire.Acceptance{Offer: offerToWire(a.Offer), HoldUntil: nanos(a.HoldUntil)}
}

func (r *reader) acceptance(w *wire.Acceptance) message.Acceptance {
	return message.Acceptance{Offer: r.offer(w.Offer), HoldUntil: r.needed("hold-until", w.HoldUntil)}
}

func voteToWire(v message.Vote) *wire.Vote {
	w := &wire.Vote{
		Offer: v.Offer, Reservations: make([]*wire.Reservation, len(v.Reservations)), HoldUntil: nanos(v.HoldUntil),
	}
	for i, x := range v.Reservations {
		w.Reservations[i] = &wire.Reservation{
			Unit: int64(x.Unit), Id: x.ID, Start: nanos(x.Slot.Start), End: nanos(x.Slot.End),
			Cores: int64(x.Slot.Cores), Note: words(x.Note),
		}
	}
	return w
}

func (r *reader) vote(w *wire.Vote) message.Vote {
	return message.Vote{
		Offer:        r.id("offer", w.Offer),
		Reservations: list(r, "reservations", w.Reservations, protocol.MaxUnits, r.reservation),
		HoldUntil:    r.needed("hold-until", w.HoldUntil),
	}
}

func (r *reader) reservation(w *wire.Reservation) message.Reservation {
	return message.Reservation{
		Unit: r.unit(w.Unit),
		ID:   r.id("reservation", w.Id),
		Slot: r.slot(w.Start, w.End, w.Cores),
		Note: r.words("note", w.Note),
	}
}

func (r *reader) cancellation(w *wire.Cancellation) message.Cancellation {
	id := func(s string) string { return r.id("reservation", s) }
	return message.Cancellation{Reservations: list(r, "reservations", w.Reservations, protocol.MaxUnits, id)}
}

func decisionToWire(d message.Decision) *wire.Decision {
	w := &wire.Decision{Contract: string(d.Contract), Outcome: string(d.Outcome), Reason: string(d.Reason)}
	if d.Receipt != nil {
		w.Receipt = d.Receipt.DER
	}
	return w
}

// decision reads what a bank says. A receipt comes with a decision and with
// nothing else, and says the same.
func (r *reader) decision(w *wire.Decision) message.Decision {
	d := message.Decision{Contract: r.contract(w.Contract), Outcome: protocol.Outcome(w.Outcome)}
	if !knownOutcome(d.Outcome) {
		r.malformed("outcome %.32q is unknown", w.Outcome)
	}
	if w.Reason != "" {
		d.Reason = r.reasonCode(w.Reason)
	}
	if decided(d.Outcome) != (len(w.Receipt) > 0) {
		r.malformed("outcome %.32q with a receipt of %d bytes", w.Outcome, len(w.Receipt))
	}
	if len(w.Receipt) == 0 || r.err != nil {
		return d
	}
	receipt := document(r, "receipt", w.Receipt, r.signed.receipt)
	if receipt.DER != nil && (receipt.Contract != d.Contract || receipt.Outcome != d.Outcome) {
		r.fail(protocol.CodeMismatch, "%s of contract %s with a receipt that says %s of %s",
			d.Outcome, d.Contract, receipt.Outcome, receipt.Receipt.Contract)
	}
	d.Receipt = &receipt
	return d
}

// refundRequest reads a refund with the bundle that it is about.
func (r *reader) refundRequest(w *wire.RefundRequest) message.RefundRequest {
	q := message.RefundRequest{
		Bundle: document(r, "bundle", w.Bundle, r.signed.bundle),
		Signed: document(r, "refund", w.Refund, r.signed.refund),
	}
	if r.err == nil && q.Bundle.ID != q.Signed.Note.Contract {
		r.fail(protocol.CodeMismatch, "a refund of contract %s with the bundle of %s", q.Signed.Note.Contract, q.Bundle.ID)
	}
	return q
}

package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

var commitBodies = []row{
	body(20, func(c *coder, m *message.Acceptance, w *wire.Acceptance) {
		c.offer(&m.Offer, part(&w.Offer))
		c.needed("hold-until", &m.HoldUntil, &w.HoldUntil)
		if m.Voucher != nil || len(w.Voucher) > 0 {
			note(c, "voucher", part(&m.Voucher), &w.Voucher)
		}
	}, on(commit, protocol.AcceptProposal)),

	body(21, func(c *coder, m *message.Vote, w *wire.Vote) {
		c.id("offer ID", &m.Offer, &w.Offer, protocol.MaxName)
		list(c, "reservations", &m.Reservations, &w.Reservations, protocol.MaxUnits, func(c *coder, m *message.Reservation, w *wire.Reservation) {
			c.unit(&m.Unit, &w.Unit)
			c.id("reservation ID", &m.ID, &w.Id, protocol.MaxName)
			c.slot(&m.Slot, &w.Start, &w.End, &w.Cores, &w.Nodes)
			c.words("note", &m.Note, &w.Note)
		})
		c.needed("hold-until", &m.HoldUntil, &w.HoldUntil)
	}, on(commit, protocol.Agree)),

	body(22, func(c *coder, m *message.Confirmation, w *wire.Confirmation) {
		c.bundle(&m.Bundle, &w.Bundle)
	}, on(commit, protocol.Confirm)),

	body(23, func(c *coder, m *message.Countersigned, w *wire.Countersigned) {
		document(c, "sale", &m.Sale, &m.Sale.DER, &w.Sale, c.documents.sale)
	}, on(commit, protocol.Confirm)),

	body(24, func(c *coder, m *message.Cancellation, w *wire.Cancellation) {
		values(c, "reservations", &m.Reservations, &w.Reservations, protocol.MaxUnits, func(c *coder, m, w *string) {
			c.id("reservation", m, w, protocol.MaxName)
		})
	}, on(commit, protocol.Cancel)),
}

var settlementBodies = []row{
	body(25, func(c *coder, m *message.Settlement, w *wire.Settlement) {
		document(c, "sale", &m.Sale, &m.Sale.DER, &w.Sale, c.documents.sale)
	}, on(request, protocol.Request)),

	body(26, func(c *coder, m *message.Annulment, w *wire.Annulment) {
		c.bundle(&m.Bundle, &w.Bundle)
	}, on(request, protocol.Request)),

	body(27, func(c *coder, m *message.OutcomeQuery, w *wire.OutcomeQuery) {
		c.contract(&m.Contract, &w.Contract)
	}, on(request, protocol.QueryRef)),

	body(28, func(c *coder, m *message.Decision, w *wire.Decision) {
		c.contract(&m.Contract, &w.Contract)
		text(c, &m.Outcome, &w.Outcome)
		if o := m.Outcome; !decided(o) && o != protocol.OutcomeUnknown && o != protocol.OutcomeGathering {
			c.malformed("unknown outcome %.32q", w.Outcome)
		}
		if m.Reason != "" || w.Reason != "" {
			c.reasonCode(&m.Reason, &w.Reason)
		}
		if c.writes && m.Receipt != nil {
			w.Receipt = m.Receipt.DER
		}
		if decided(m.Outcome) != (len(w.Receipt) > 0) {
			c.malformed("outcome %.32q with a receipt of %d bytes", m.Outcome, len(w.Receipt))
		}
		if len(w.Receipt) == 0 {
			return
		}
		document(c, "receipt", part(&m.Receipt), &m.Receipt.DER, &w.Receipt, c.documents.receipt)
		if r := m.Receipt; c.reading() && (r.Contract != m.Contract || r.Outcome != m.Outcome) {
			c.fail(protocol.CodeMismatch, "%s of contract %s with a receipt for %s of %s", m.Outcome, m.Contract, r.Outcome, r.Contract)
		}
	}, on(commit, protocol.Agree, protocol.Refuse, protocol.Inform), on(request, protocol.Agree, protocol.Refuse, protocol.Inform)),

	body(29, func(c *coder, m *message.UnitCancellation, w *wire.UnitCancellation) {
		note(c, "cancellation", &m.Signed, &w.Cancel)
	}, on(request, protocol.Request)),

	body(30, func(c *coder, m *message.RefundRequest, w *wire.RefundRequest) {
		c.pastBundle(&m.Bundle, &w.Bundle)
		note(c, "refund", &m.Signed, &w.Refund)
		c.sameContract("refund", m.Signed.Note.Contract, m.Bundle)
	}, on(request, protocol.Request)),
}

// sameContract checks on arrival that a document is about the bundle beside it.
func (c *coder) sameContract(what string, id protocol.ContractID, bundle contract.Verified) {
	if c.reading() && id != bundle.ID {
		c.fail(protocol.CodeMismatch, "a %s of contract %s with the bundle of %s", what, id, bundle.ID)
	}
}

package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

var bankBodies = []row{
	body(35, func(c *coder, m *message.JobReport, w *wire.JobReport) {
		c.pastBundle(&m.Bundle, &w.Bundle)
		note(c, "record", &m.Signed, &w.Record)
		c.sameContract("record", m.Signed.Note.Contract, m.Bundle)
	}, on(request, protocol.Request, protocol.Inform)),

	body(36, func(c *coder, m *message.JobVerdict, w *wire.JobVerdict) {
		note(c, "verdict", &m.Signed, &w.Verdict)
	}, on(request, protocol.Request)),

	body(37, func(c *coder, m *message.VoucherRequest, w *wire.VoucherRequest) {
		c.id("conversation", &m.Conversation, &w.Conversation, protocol.MaxConversation)
		c.currency(&m.Currency, &w.Currency)
		c.price("amount", &m.Amount, &w.Amount)
		c.needed("until", &m.Until, &w.Until)
	}, on(request, protocol.Request)),

	body(38, func(c *coder, m *message.Vouched, w *wire.Voucher) {
		note(c, "voucher", &m.Signed, &w.Voucher)
	}, on(request, protocol.Agree)),

	body(39, func(c *coder, m *message.QuoteRequest, w *wire.QuoteRequest) {
		c.id("id", &m.ID, &w.Id, protocol.MaxConversation)
		c.currency(&m.From, &w.From)
		c.currency(&m.To, &w.To)
		c.price("gives", &m.Gives, &w.Gives)
	}, on(request, protocol.Request)),

	body(40, func(c *coder, m *message.ExchangeRequest, w *wire.ExchangeRequest) {
		c.id("id", &m.ID, &w.Id, protocol.MaxConversation)
		c.amount("least", &m.Least, &w.Least)
	}, on(request, protocol.Request)),

	body(41, func(c *coder, m *message.Quoted, w *wire.Quote) {
		note(c, "quote", &m.Signed, &w.Quote)
	}, on(request, protocol.Agree)),

	body(42, func(c *coder, m *message.Readmission, w *wire.Readmission) {
		document(c, "receipt", &m.Receipt, &m.Receipt.DER, &w.Receipt, c.documents.pastReceipt)
		if m.Receipt.Outcome == protocol.OutcomeVoid && len(m.Bundle.DER)+len(w.Bundle) == 0 {
			return
		}
		c.pastBundle(&m.Bundle, &w.Bundle)
		c.sameContract("receipt", m.Receipt.Contract, m.Bundle)
	}, on(request, protocol.Request)),
}

// recoveryBodies are exchanged after a seller has lost its journal.
var recoveryBodies = []row{
	body(52, func(c *coder, m *message.SoldQuery, w *wire.SoldQuery) {
		c.needed("ends", &m.Ends, &w.Ends)
		c.contractOrNone(&m.After, &w.After)
	}, on(request, protocol.QueryRef)),

	body(53, func(c *coder, m *message.SoldList, w *wire.SoldList) {
		list(c, "sold", &m.Sold, &w.Sold, message.MaxSold, func(c *coder, m *protocol.Sold, w *wire.Sold) {
			c.contract(&m.Contract, &w.Contract)
			c.agent("user", &m.User, &w.User)
			c.id("conversation", &m.Conversation, &w.Conversation, protocol.MaxConversation)
			c.needed("ends", &m.Ends, &w.Ends)
			list(c, "units", &m.Units, &w.Units, protocol.MaxUnits, func(c *coder, m *protocol.SoldUnit, w *wire.SoldUnit) {
				c.unit(&m.Unit, &w.Unit)
				c.name("reservation", &m.Reservation, &w.Reservation, protocol.MaxReservation)
				c.slot(&m.Slot, &w.Start, &w.End, &w.Cores, &w.Nodes)
			})
		})
		same(c, &m.More, &w.More)
		same(c, &m.Complete, &w.Complete)
	}, on(request, protocol.Inform)),

	body(54, func(c *coder, m *message.BundleQuery, w *wire.BundleQuery) {
		c.contract(&m.Contract, &w.Contract)
	}, on(request, protocol.QueryRef)),

	body(55, func(c *coder, m *message.BundleCopy, w *wire.BundleCopy) {
		c.pastBundle(&m.Bundle, &w.Bundle)
	}, on(request, protocol.Inform)),
}

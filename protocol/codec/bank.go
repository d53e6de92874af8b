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

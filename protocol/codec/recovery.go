package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

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

package bank

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// sold passes a seller's question on to the store, which has the past. A bank
// that recovers does not know all that it settled, and says nothing.
func (r *Role) sold(m protocol.Message, q message.SoldQuery) protocol.Output {
	if r.ledger.Recovering() {
		return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Refuse,
			message.Refused(protocol.CodeUnavailable, "the bank was restored from a backup and still recovers"))}}
	}
	return r.askHistory(m, message.SoldLookup{Seller: m.Sender, Query: q})
}

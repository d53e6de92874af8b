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
	fwd := m
	fwd.Sender, fwd.Receivers = r.cfg.ID, []protocol.AgentID{protocol.LocalHistory}
	fwd.ReplyWith = string(m.Sender) + " " + m.ReplyWith
	fwd.Body = message.SoldLookup{Seller: m.Sender, Query: q}
	return protocol.Output{Send: []protocol.Message{fwd}}
}

// passSold brings the store's answer to who asked.
func (r *Role) passSold(m protocol.Message, s message.SoldList) protocol.Output {
	if m.Sender != protocol.LocalHistory {
		return protocol.Output{}
	}
	to, tag := cutSpace(m.InReplyTo)
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{protocol.AgentID(to)},
		Protocol: protocol.ProtocolRequest, Conversation: m.Conversation, InReplyTo: tag, Body: s,
	}}}
}

package bank

import (
	"strings"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxParked bounds the messages that wait for the store. An answer of the store may
// be lost; so at the bound all of them are dropped, and their senders ask again.
const maxParked = 1 << 12

// history owns what waits for the store, which has the past: requests about
// contracts that the ledger no longer has in memory. Questions that only the store
// can answer pass through it, with the asker's address in their reply-with.
type history struct {
	self   protocol.AgentID
	ledger *ledger.Ledger
	parked map[protocol.ContractID][]protocol.Message
	n      int
}

// park keeps a message until the store has answered for its contract.
func (h *history) park(m protocol.Message, id protocol.ContractID) protocol.Output {
	if h.n >= maxParked {
		clear(h.parked)
		h.n = 0
	}
	h.n++
	h.parked[id] = append(h.parked[id], m)
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.QueryRef, Sender: h.self, Receivers: []protocol.AgentID{protocol.LocalHistory},
		Protocol: protocol.ProtocolRequest, Conversation: string(id), Body: message.OutcomeLookup{Contract: id},
	}}}
}

// recall gives the store's answer to the ledger, and returns what waited for it.
func (h *history) recall(m protocol.Message, found message.FoundOutcome) []protocol.Message {
	id := protocol.ContractID(m.Conversation)
	if m.Sender != protocol.LocalHistory || h.ledger.Recall(id, ledger.Lookup{Found: found.Found, Receipt: found.Receipt, AsOf: found.AsOf}) != nil {
		return nil
	}
	list := h.parked[id]
	h.n -= len(list)
	delete(h.parked, id)
	return list
}

// ask passes a question on to the store.
func (h *history) ask(m protocol.Message, body protocol.Body) protocol.Output {
	m.ReplyWith = string(m.Sender) + " " + m.ReplyWith
	m.Sender, m.Receivers, m.Body = h.self, []protocol.AgentID{protocol.LocalHistory}, body
	return protocol.Output{Send: []protocol.Message{m}}
}

// statement asks for the entries of the sender's own account, or of the group that
// pays for its jobs.
func (h *history) statement(m protocol.Message, q message.StatementQuery) protocol.Output {
	if q.Account != m.Sender {
		return refused(h.self, m, protocol.CodeForbidden, "the account of somebody else")
	}
	if q.Group {
		g, pays := h.ledger.Groups.Paying(m.Sender)
		if !pays {
			return refused(h.self, m, protocol.CodeForbidden, "no group pays for the jobs of this account")
		}
		q.Account = g
	}
	return h.ask(m, q)
}

// sold asks for a seller's sales. A bank that recovers does not know all that it
// settled, and refuses.
func (h *history) sold(m protocol.Message, q message.SoldQuery) protocol.Output {
	if h.ledger.Recovering() {
		return refused(h.self, m, protocol.CodeUnavailable, "the bank was restored from a backup and still recovers")
	}
	return h.ask(m, message.SoldLookup{Seller: m.Sender, Query: q})
}

// passOn brings the store's answer to the agent that asked.
func (h *history) passOn(m protocol.Message, how protocol.Performative, body protocol.Body) protocol.Output {
	if m.Sender != protocol.LocalHistory {
		return protocol.Output{}
	}
	to, tag, _ := strings.Cut(m.InReplyTo, " ")
	if s, ok := body.(message.Statement); ok { // also of a group's account, which has no agent's ID
		s.Account = protocol.AgentID(to)
		body = s
	}
	return protocol.Output{Send: []protocol.Message{{
		Performative: how, Sender: h.self, Receivers: []protocol.AgentID{protocol.AgentID(to)},
		Protocol: protocol.ProtocolRequest, Conversation: m.Conversation, InReplyTo: tag, Body: body,
	}}}
}

// passProof brings the store's answer about the log to the agent that asked.
func (h *history) passProof(m protocol.Message, found message.FoundProof) protocol.Output {
	if found.Refusal != nil {
		return h.passOn(m, protocol.Refuse, *found.Refusal)
	}
	return h.passOn(m, protocol.Inform, message.Proof{Document: found.Document})
}

package bank

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// proof passes a question about the log to the store, which has it. Anybody may
// ask for heads; who may see the entries of a contract is for the store to tell.
func (r *Role) proof(m protocol.Message, q message.ProofQuery) protocol.Output {
	fwd := m
	fwd.Sender, fwd.Receivers = r.cfg.ID, []protocol.AgentID{protocol.LocalHistory}
	fwd.ReplyWith = string(m.Sender) + " " + m.ReplyWith
	fwd.Body = message.ProofLookup{Query: q, By: m.Sender}
	return protocol.Output{Send: []protocol.Message{fwd}}
}

// passProof brings the store's answer to who asked; its address is in the
// reply-with that proof made.
func (r *Role) passProof(m protocol.Message, found message.FoundProof) protocol.Output {
	if m.Sender != protocol.LocalHistory {
		return protocol.Output{}
	}
	to, tag := cutSpace(m.InReplyTo)
	answer := protocol.Message{
		Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{protocol.AgentID(to)},
		Protocol: protocol.ProtocolRequest, Conversation: m.Conversation, InReplyTo: tag, Body: message.Proof{Document: found.Document},
	}
	if found.Refusal != nil {
		answer.Performative, answer.Body = protocol.Refuse, *found.Refusal
	}
	return protocol.Output{Send: []protocol.Message{answer}}
}

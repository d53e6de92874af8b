package bank

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// proof passes a question about the log to the store, which has it. Anybody may
// ask for heads; who may see the entries of a contract is for the store to tell.
func (r *Role) proof(m protocol.Message, q message.ProofQuery) protocol.Output {
	return r.askHistory(m, message.ProofLookup{Query: q, By: m.Sender})
}

// passProof brings the store's answer to who asked.
func (r *Role) passProof(m protocol.Message, found message.FoundProof) protocol.Output {
	if found.Refusal != nil {
		return r.passOn(m, protocol.Refuse, *found.Refusal)
	}
	return r.passOn(m, protocol.Inform, message.Proof{Document: found.Document})
}

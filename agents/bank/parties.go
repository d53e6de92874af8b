package bank

import (
	"slices"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// A decision concerns everybody that its bundle names. The bank tells them all
// itself, once, when it has decided: those who asked get their answer, the others
// are informed. Nobody has to rely on that: sellers pass receipts on to their
// user, and who hears nothing asks.

// decideBundle is decide of a request that may decide its bundle.
func (r *Role) decideBundle(m protocol.Message, v contract.Verified, ask func() (protocol.Receipt, []protocol.Record, error)) protocol.Output {
	var receipt protocol.Receipt
	changed := false
	out := r.decide(m, v.ID, func() (protocol.Receipt, []protocol.Record, error) {
		var records []protocol.Record
		var err error
		receipt, records, err = ask()
		changed = err == nil && len(records) > 0
		return receipt, records, err
	})
	if changed && decided(receipt) {
		parties := append([]protocol.AgentID{v.Bundle.User}, v.Sellers()...)
		out.Send = append(r.tellParties(receipt, v.Bundle.Conversation, parties, out.Send), out.Send...)
	}
	return out
}

// tellParties informs those of the parties that no answer goes to.
func (r *Role) tellParties(receipt protocol.Receipt, conversation string, parties []protocol.AgentID, answers []protocol.Message) []protocol.Message {
	var list []protocol.Message
	for _, to := range parties {
		if slices.ContainsFunc(answers, func(m protocol.Message) bool { return slices.Contains(m.Receivers, to) }) {
			continue
		}
		list = append(list, protocol.Message{
			Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{to},
			Protocol: protocol.ProtocolRequest, Conversation: conversation, Body: decision(receipt),
		})
	}
	return list
}

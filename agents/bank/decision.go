package bank

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A decision concerns every party that its bundle names. The bank informs all of them itself, once,
// when it has decided: agents that asked get their answer, the others an inform. Nobody has to rely
// on that: sellers pass receipts on to their user, and an agent that hears nothing asks.

// decide asks the ledger and carries the answer to the asker, and, if it is a
// decision, to every other agent that waits for it.
func (r *Role) decide(m protocol.Message, id protocol.ContractID, ask func() (protocol.Receipt, []protocol.Record, error)) protocol.Output {
	receipt, records, err := ask()
	switch {
	case errors.Is(err, ledger.ErrAskStore):
		return r.history.park(m, id)
	case err != nil:
		return refusal(r.cfg.ID, m, err)
	}
	out := protocol.Output{Save: records}
	if receipt.Outcome == protocol.OutcomeGathering && m.Performative == protocol.Request {
		r.waiting.add(id, m)
		return out
	}
	out.Send = append(out.Send, r.answer(m, receipt))
	if decided(receipt) {
		r.waiting.drop(id, m.Sender)
		out.Send = append(out.Send, r.answerWaiting(receipt)...)
	}
	return out
}

// decideBundle is decide for a request that may decide its bundle.
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
		out.Send = append(r.inform(receipt, v.Bundle.Conversation, parties, out.Send), out.Send...)
	}
	return out
}

func decided(r protocol.Receipt) bool {
	return r.Outcome == protocol.OutcomeSettled || r.Outcome == protocol.OutcomeVoid
}

// answer is the reply to a question about a contract. A decision carries its
// receipt, which is signed on the way out.
func (r *Role) answer(m protocol.Message, receipt protocol.Receipt) protocol.Message {
	p := protocol.Inform
	if m.Performative == protocol.Request {
		p = protocol.Agree
		if receipt.Outcome == protocol.OutcomeVoid {
			p = protocol.Refuse
		}
	}
	return m.Reply(r.cfg.ID, p, decision(receipt))
}

// answerWaiting answers every agent that waits for a contract.
func (r *Role) answerWaiting(receipt protocol.Receipt) []protocol.Message {
	var list []protocol.Message
	for _, m := range r.waiting.take(receipt.Contract) {
		list = append(list, r.answer(m, receipt))
	}
	return list
}

// inform sends a decision to those of its parties that no answer goes to.
func (r *Role) inform(receipt protocol.Receipt, conversation string, parties []protocol.AgentID, answers []protocol.Message) []protocol.Message {
	var list []protocol.Message
	for _, to := range parties {
		if slices.ContainsFunc(answers, func(m protocol.Message) bool { return slices.Contains(m.Receivers, to) }) {
			continue
		}
		list = append(list, r.message(to, conversation, decision(receipt)))
	}
	return list
}

func (r *Role) message(to protocol.AgentID, conversation string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{to},
		Protocol: protocol.ProtocolRequest, Conversation: conversation, Body: body,
	}
}

// decision is a receipt as it is sent: its form wants refunds and ends in order of
// unit, whatever order they were made in.
func decision(receipt protocol.Receipt) message.Decision {
	receipt.Refunds, receipt.Ends = slices.Clone(receipt.Refunds), slices.Clone(receipt.Ends)
	slices.SortFunc(receipt.Refunds, func(a, b protocol.Refund) int { return cmp.Compare(a.Unit, b.Unit) })
	slices.SortFunc(receipt.Ends, func(a, b protocol.UnitEnd) int { return cmp.Compare(a.Unit, b.Unit) })
	d := message.Decision{Contract: receipt.Contract, Outcome: receipt.Outcome, Reason: receipt.Reason}
	if decided(receipt) {
		d.Receipt = &message.SignedReceipt{Receipt: receipt}
	}
	return d
}

func refused(self protocol.AgentID, m protocol.Message, code protocol.Code, note string) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(self, protocol.Refuse, message.Refused(code, note))}}
}

func refusal(self protocol.AgentID, m protocol.Message, err error) protocol.Output {
	var r *ledger.Refusal
	if errors.As(err, &r) {
		return refused(self, m, r.Code, r.Note)
	}
	return refused(self, m, protocol.CodeMalformed, err.Error())
}

// expire ends what is over, and informs its parties.
func (r *Role) expire(now time.Time) protocol.Output {
	done, records := r.ledger.Expire(now)
	out := protocol.Output{Save: records}
	for _, v := range done.Voided {
		waiting := r.answerWaiting(v.Receipt)
		parties := append([]protocol.AgentID{v.User}, v.Sellers...)
		out.Send = append(out.Send, r.inform(v.Receipt, string(v.Contract), parties, waiting)...)
		out.Send = append(out.Send, waiting...)
	}
	for _, e := range done.Ended {
		out.Send = append(out.Send, r.informEnded(e)...)
	}
	return out
}

// refund gives back a unit's cost because its seller asks.
func (r *Role) refund(now time.Time, m protocol.Message, q message.RefundRequest) protocol.Output {
	n := q.Signed.Note
	if n.Contract != q.Bundle.ID || q.Signed.Signer.ID != n.Seller {
		return refused(r.cfg.ID, m, protocol.CodeMismatch, "the note is for another contract")
	}
	return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
		return r.ledger.Refund(now, n.Contract, q.Bundle.Bundle, n.Unit, n.Amount, n.Seller)
	})
}

// readmit takes back a receipt of the bank's own, while it recovers.
func (r *Role) readmit(now time.Time, m protocol.Message, q message.Readmission) protocol.Output {
	if q.Receipt.Signer.ID != r.cfg.ID {
		return refused(r.cfg.ID, m, protocol.CodeSignature, "the receipt is not this bank's")
	}
	id := cmp.Or(q.Bundle.ID, q.Receipt.Contract)
	return r.decide(m, id, func() (protocol.Receipt, []protocol.Record, error) {
		return r.ledger.Readmit(now, id, q.Bundle.Bundle, q.Receipt.Receipt)
	})
}

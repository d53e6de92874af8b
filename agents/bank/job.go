package bank

import (
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// report takes a seller's record of a job. A usage record is sent to its user, also if
// nothing is due by it and the unit has ended: it may be that a promise was broken.
func (r *Role) report(now time.Time, m protocol.Message, q message.JobReport) protocol.Output {
	n := q.Signed.Note
	hash, err := contract.RecordHash(n)
	switch {
	case err != nil:
		return r.no(m, protocol.CodeMalformed, err.Error())
	case n.Contract != q.Bundle.ID || q.Signed.Signer.ID != n.Seller:
		return r.no(m, protocol.CodeMismatch, "the record is for another contract")
	}
	j := ledger.JobReport{Unit: n.Unit, Success: n.Success, Usage: n.Usage, Ref: hash}
	if due, err := ledger.Due(q.Bundle.Bundle, n.Seller, j); err == nil && due != n.Due {
		return r.no(m, protocol.CodeMismatch, "the record says that "+n.Due.String()+" is due, the contract "+due.String())
	}
	out := r.ends(n.Contract, n.Unit, m.Sender, func() protocol.Output {
		return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Report(now, n.Contract, q.Bundle.Bundle, n.Seller, j)
		})
	})
	filed := r.ledger.Filed(n.Contract, n.Unit) == hash || n.Due == 0 && q.Bundle.Bundle.Mode == protocol.ModeMetered
	if filed && len(out.Save) > 0 {
		out.Send = append([]protocol.Message{r.forward(q)}, out.Send...) // before the end of a unit for which nothing is due
	}
	return out
}

// forward sends a filed record to its user, who is to countersign or dispute it.
func (r *Role) forward(q message.JobReport) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{q.Bundle.Bundle.User},
		Protocol: protocol.ProtocolRequest, Conversation: q.Bundle.Bundle.Conversation, Body: q,
	}
}

// judge takes a user's word on a record that is filed. Who agrees must do so to that
// record and no other; a dispute is of the unit's usage, whatever copy its user saw.
func (r *Role) judge(now time.Time, m protocol.Message, q message.JobVerdict) protocol.Output {
	n := q.Signed.Note
	if q.Signed.Signer.ID != n.User {
		return r.no(m, protocol.CodeSignature, "the verdict is not signed by whom it names")
	}
	if filed := r.ledger.Filed(n.Contract, n.Unit); filed != "" && filed != n.Record && n.Agree {
		return r.no(m, protocol.CodeMismatch, "the record that is filed is "+filed)
	}
	return r.ends(n.Contract, n.Unit, m.Sender, func() protocol.Output {
		return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Judge(now, n.Contract, n.Unit, n.User, n.Agree, n.Record)
		})
	})
}

// ends does what may end a unit's hold. If it did, those of the unit's user and
// seller who did not ask are told; who misses it asks.
func (r *Role) ends(id protocol.ContractID, unit int, asker protocol.AgentID, do func() protocol.Output) protocol.Output {
	user, seller, open := r.ledger.Parties(id, unit)
	out := do()
	if _, _, still := r.ledger.Parties(id, unit); !open || still {
		return out
	}
	for _, m := range r.tellEnded(ledger.Ended{Contract: id, User: user, Seller: seller, Unit: unit}) {
		if m.Receivers[0] != asker {
			out.Send = append(out.Send, m)
		}
	}
	return out
}

// tellEnded tells seller and user of a unit that ended because somebody was
// silent, if memory still has its receipt; else they ask.
func (r *Role) tellEnded(e ledger.Ended) []protocol.Message {
	receipt, err := r.ledger.Outcome(e.Contract)
	if err != nil {
		return nil
	}
	var list []protocol.Message
	for _, to := range []protocol.AgentID{e.User, e.Seller} {
		list = append(list, protocol.Message{
			Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{to},
			Protocol: protocol.ProtocolRequest, Conversation: string(e.Contract), Body: decision(receipt),
		})
	}
	return list
}

// readmit takes back a receipt of the bank's own, while it recovers.
func (r *Role) readmit(now time.Time, m protocol.Message, q message.Readmission) protocol.Output {
	if q.Receipt.Signer.ID != r.cfg.ID {
		return r.no(m, protocol.CodeSignature, "the receipt is not this bank's")
	}
	return r.decide(m, q.Bundle.ID, func() (protocol.Receipt, []protocol.Record, error) {
		return r.ledger.Readmit(now, q.Bundle.ID, q.Bundle.Bundle, q.Receipt.Receipt)
	})
}

func (r *Role) no(m protocol.Message, code protocol.Code, note string) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Refuse, message.Refused(code, note))}}
}

// voucher holds an amount for the bundle of a conversation, and says so.
func (r *Role) voucher(now time.Time, m protocol.Message, q message.VoucherRequest) protocol.Output {
	h, records, err := r.ledger.Voucher(now, m.Sender, q.Currency, q.Conversation, q.Amount, q.Until)
	if err != nil {
		return protocol.Output{Send: []protocol.Message{r.refusal(m, err)}}
	}
	n := contract.Voucher{
		Version: contract.NoteVersion, Bank: r.cfg.ID, User: m.Sender, Conversation: q.Conversation,
		Currency: h.Currency, Amount: h.Amount, Until: h.Until, Hold: h.Number,
	}
	body := message.Vouched{Signed: contract.VerifiedNote[contract.Voucher]{Note: n}}
	return protocol.Output{Save: records, Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Agree, body)}}
}

// quote promises a rate of exchange.
func (r *Role) quote(now time.Time, m protocol.Message, q message.QuoteRequest) protocol.Output {
	return r.quoted(m)(r.ledger.Quote(now, m.Sender, q.ID, q.From, q.To, q.Gives))
}

// exchange carries a quote out.
func (r *Role) exchange(now time.Time, m protocol.Message, q message.ExchangeRequest) protocol.Output {
	return r.quoted(m)(r.ledger.Exchange(now, m.Sender, q.ID))
}

func (r *Role) quoted(m protocol.Message) func(q ledger.Quote, records []protocol.Record, err error) protocol.Output {
	return func(q ledger.Quote, records []protocol.Record, err error) protocol.Output {
		if err != nil {
			return protocol.Output{Send: []protocol.Message{r.refusal(m, err)}}
		}
		n := contract.Quote{
			Version: contract.NoteVersion, Bank: r.cfg.ID, ID: q.ID, User: q.User, From: q.From, To: q.To,
			Gives: q.Gives, Gets: q.Gets, Until: q.Until, Entry: q.Entry,
		}
		body := message.Quoted{Signed: contract.VerifiedNote[contract.Quote]{Note: n}}
		return protocol.Output{Save: records, Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Agree, body)}}
	}
}

package bank

import (
	"strings"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// report takes a seller's record of a job. A usage record goes on to its user, even if nothing is
// due by it and the unit has ended: the seller may have broken a promise.
func (r *Role) report(now time.Time, m protocol.Message, q message.JobReport) protocol.Output {
	n := q.Signed.Note
	hash, err := contract.RecordHash(n)
	switch {
	case err != nil:
		return refused(r.cfg.ID, m, protocol.CodeMalformed, err.Error())
	case n.Contract != q.Bundle.ID || q.Signed.Signer.ID != n.Seller:
		return refused(r.cfg.ID, m, protocol.CodeMismatch, "the record is for another contract")
	}
	j := ledger.JobReport{Unit: n.Unit, Success: n.Success, Delivered: true, Usage: n.Usage, Ref: hash}
	due, err := ledger.Due(q.Bundle.Bundle, n.Seller, j)
	if err == nil && due != n.Due && !n.Success { // the seller has failed, and claims less
		j.Delivered = false
		due, err = ledger.Due(q.Bundle.Bundle, n.Seller, j)
	}
	if err == nil && due != n.Due {
		return refused(r.cfg.ID, m, protocol.CodeMismatch, "the record says that "+n.Due.String()+" is due, the contract "+due.String())
	}
	out := r.endUnit(n.Contract, n.Unit, m.Sender, func() protocol.Output {
		return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Report(now, n.Contract, q.Bundle.Bundle, n.Seller, j)
		})
	})
	filed := r.ledger.Filed(n.Contract, n.Unit) == hash || n.Due == 0 && q.Bundle.Bundle.Mode == protocol.ModeMetered
	if filed && len(out.Save) > 0 {
		b := &q.Bundle.Bundle // its user countersigns or disputes the record, before a unit ends for which nothing is due
		out.Send = append([]protocol.Message{r.message(b.User, b.Conversation, q)}, out.Send...)
	}
	return out
}

// judge takes a user's verdict on a filed record. A user agrees to that record and
// to no other; a dispute is about the unit's usage, whatever copy its user saw.
func (r *Role) judge(now time.Time, m protocol.Message, q message.JobVerdict) protocol.Output {
	n := q.Signed.Note
	if q.Signed.Signer.ID != n.User {
		return refused(r.cfg.ID, m, protocol.CodeSignature, "the verdict is not signed by the user that it names")
	}
	if filed := r.ledger.Filed(n.Contract, n.Unit); filed != "" && filed != n.Record && n.Agree {
		return refused(r.cfg.ID, m, protocol.CodeMismatch, "the filed record is "+filed)
	}
	return r.endUnit(n.Contract, n.Unit, m.Sender, func() protocol.Output {
		return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Judge(now, n.Contract, n.Unit, n.User, n.Agree, strings.TrimSpace(n.Record+" "+n.Why))
		})
	})
}

// endUnit does what may end a unit's hold. If it did, the bank informs the unit's
// user and seller, except the one that asked; a party that misses it asks.
func (r *Role) endUnit(id protocol.ContractID, unit int, asker protocol.AgentID, do func() protocol.Output) protocol.Output {
	user, seller, open := r.ledger.Parties(id, unit)
	out := do()
	if _, _, still := r.ledger.Parties(id, unit); !open || still {
		return out
	}
	for _, m := range r.informEnded(ledger.Ended{Contract: id, User: user, Seller: seller, Unit: unit}) {
		if m.Receivers[0] != asker {
			out.Send = append(out.Send, m)
		}
	}
	return out
}

// informEnded sends the receipt of a unit that ended to its user and seller, if
// memory still has it; else they ask.
func (r *Role) informEnded(e ledger.Ended) []protocol.Message {
	receipt, err := r.ledger.Outcome(e.Contract)
	if err != nil {
		return nil
	}
	return r.inform(receipt, string(e.Contract), []protocol.AgentID{e.User, e.Seller}, nil)
}

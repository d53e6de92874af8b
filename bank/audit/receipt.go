package audit

import (
	"fmt"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// CheckReceipt checks that the entries of a document, which have been verified,
// say what a receipt says: what was decided about its contract, when and in
// which entry, what it cost, and what was refunded. Who pays whom is not in an
// entry; the contract's ID stands for it, since it is a hash of the bundle.
func (d Document) CheckReceipt(r protocol.Receipt) error {
	byNumber := map[uint64]ledger.Entry{}
	for _, p := range d.Entries {
		e, err := ledger.DecodeEntry(ledger.NumberKey(p.Number), p.Record)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProof, err)
		}
		byNumber[p.Number] = e
	}
	e, ok := byNumber[r.Entry]
	if !ok {
		return fmt.Errorf("%w: it is of other entries than %d, which the receipt names", ErrProof, r.Entry)
	}
	if err := sameDecision(e, r); err != nil {
		return err
	}
	for _, f := range r.Refunds {
		e, ok := byNumber[f.Entry]
		if !ok || !sameRefund(e, r.Contract, f) {
			return fmt.Errorf("%w: entry %d is not the receipt's refund of unit %d", ErrProof, f.Entry, f.Unit)
		}
	}
	return nil
}

func sameDecision(e ledger.Entry, r protocol.Receipt) error {
	switch {
	case e.Contract != r.Contract || !e.Time.Equal(r.Time):
	case r.Outcome == protocol.OutcomeVoid && e.Kind == ledger.KindVoid && e.User == r.User && e.Currency == r.Currency && e.Reason == r.Reason:
		return nil
	case r.Outcome == protocol.OutcomeSettled && e.Kind == ledger.KindSettle && len(e.Legs) > 0 && e.Legs[0].Amount == -r.Total:
		return nil
	}
	return fmt.Errorf("%w: entry %d is a %s of contract %s at %s, and the receipt says something else", ErrProof, e.Number, e.Kind, e.Contract, e.Time)
}

func sameRefund(e ledger.Entry, id protocol.ContractID, f protocol.Refund) bool {
	is := e.Refund()
	return e.Kind == ledger.KindRefund && e.Contract == id && is.Unit == f.Unit && is.Amount == f.Amount && is.Time.Equal(f.Time)
}

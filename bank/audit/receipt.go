package audit

import (
	"fmt"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// CheckReceipt checks a receipt against the verified entries of a document: the decision about its
// contract, its time and entry, the cost, the refunds and the ends of units. An entry does not name
// payer and payee; the contract's ID covers them, because it is a hash of the bundle.
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
		return fmt.Errorf("%w: it does not have entry %d, which the receipt names", ErrProof, r.Entry)
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
	for _, u := range r.Ends {
		e, ok := byNumber[u.Entry]
		if !ok || !sameEnd(e, r.Contract, u) {
			return fmt.Errorf("%w: entry %d is not the receipt's end of unit %d", ErrProof, u.Entry, u.Unit)
		}
	}
	return nil
}

// sameDecision compares an entry with a receipt. Entries that void or hold have the user
// and the currency; those that pay name accounts by number.
func sameDecision(e ledger.Entry, r protocol.Receipt) error {
	said, err := e.Receipt(r.Bank)
	pays := e.Kind == ledger.KindSettle || e.Kind == ledger.KindDraw
	same := err == nil && said.Contract == r.Contract && said.Time.Equal(r.Time) && said.Outcome == r.Outcome && said.Reason == r.Reason &&
		said.Total == r.Total && said.Mode == r.Mode && (pays || said.User == r.User && said.Currency == r.Currency)
	if !same {
		return fmt.Errorf("%w: entry %d is a %s of contract %s at %s, but the receipt differs", ErrProof, e.Number, e.Kind, e.Contract, e.Time)
	}
	return nil
}

func sameRefund(e ledger.Entry, id protocol.ContractID, f protocol.Refund) bool {
	var said protocol.Receipt
	e.AddTo(&said)
	return e.Contract == id && len(said.Refunds) == 1 && said.Refunds[0].Unit == f.Unit && said.Refunds[0].Amount == f.Amount && said.Refunds[0].Time.Equal(f.Time)
}

func sameEnd(e ledger.Entry, id protocol.ContractID, u protocol.UnitEnd) bool {
	var said protocol.Receipt
	e.AddTo(&said)
	return e.Contract == id && len(said.Ends) == 1 && said.Ends[0].Unit == u.Unit && said.Ends[0].Paid == u.Paid && said.Ends[0].How == u.How && said.Ends[0].Time.Equal(u.Time)
}

package audit

import (
	"fmt"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// CheckReceipt checks that the entries of a document, which have been verified,
// say what a receipt says: what was decided about its contract, when and in
// which entry, what it cost, what was refunded and how its units ended. Who pays
// whom is not in an entry; the contract's ID stands for it, since it is a hash of
// the bundle.
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
	for _, u := range r.Ends {
		e, ok := byNumber[u.Entry]
		if !ok || !sameEnd(e, r.Contract, u) {
			return fmt.Errorf("%w: entry %d is not the receipt's end of unit %d", ErrProof, u.Entry, u.Unit)
		}
	}
	return nil
}

// sameDecision reports why an entry does not say what a receipt says. The user and the
// currency are in entries that void or hold; in one that pays they are of the accounts
// that it names by number.
func sameDecision(e ledger.Entry, r protocol.Receipt) error {
	said, err := e.Receipt(r.Bank)
	pays := e.Kind == ledger.KindSettle || e.Kind == ledger.KindDraw
	same := err == nil && said.Contract == r.Contract && said.Time.Equal(r.Time) && said.Outcome == r.Outcome && said.Reason == r.Reason &&
		said.Total == r.Total && said.Mode == r.Mode && (pays || said.User == r.User && said.Currency == r.Currency)
	if !same {
		return fmt.Errorf("%w: entry %d is a %s of contract %s at %s, and the receipt says something else", ErrProof, e.Number, e.Kind, e.Contract, e.Time)
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

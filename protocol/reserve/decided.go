package reserve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// DecidedContract is a contract that a bank has decided, with the user's signature and the
// bank's receipt as DER. They were verified before they were saved.
type DecidedContract struct {
	Key      string // of the record
	Bundle   []byte
	SignedAt time.Time // when the bundle's signatures were valid
	Decided  protocol.Receipt
	Receipt  []byte
	Sale     []byte // a seller's copy, which it has signed as well
	Row      []byte // a user's record
}

// ReceiptOf is the receipt in a record that a role saves, and its DER; nil: none.
func ReceiptOf(r protocol.Record) (receipt protocol.Receipt, der []byte, err error) {
	switch {
	case r.Value == nil:
	case r.Table == TableBundles:
		var s Saved
		s, err = ReadSaved(r.Value)
		der = s.Receipt
	case r.Table == TableReceipts:
		err = decoding(func(_ string, s savedReceipt) error { receipt, der = s.Receipt, s.Signed; return nil })(r.Key, r.Value)
		return receipt, der, err
	case r.Table == TableLater:
		der = r.Value
	}
	if len(der) > 0 && err == nil {
		receipt, err = contract.ReadReceipt(der)
	}
	return receipt, der, err
}

// Since reports whether the bank has decided anything about the contract at an instant or later.
func (p DecidedContract) Since(at time.Time) bool {
	return !p.Decided.Time.Before(at) ||
		slices.ContainsFunc(p.Decided.Refunds, func(f protocol.Refund) bool { return !f.Time.Before(at) }) ||
		slices.ContainsFunc(p.Decided.Ends, func(e protocol.UnitEnd) bool { return !e.Time.Before(at) })
}

// EachBought calls f with each of a user's decided contracts.
func EachBought(t protocol.Tables, f func(DecidedContract) error) error {
	list, err := laterReceipts(t, "")
	if err != nil {
		return err
	}
	return t.Each(TableBundles, func(key string, value []byte) error {
		s, err := ReadSaved(value)
		if err != nil || len(s.Receipt) == 0 {
			return err
		}
		r, receipt, err := latestOf(s.Receipt, list[key])
		if err != nil {
			return fmt.Errorf("receipt of %s: %w", key, err)
		}
		return f(DecidedContract{Key: key, Bundle: s.Bundle, SignedAt: s.SignedAt, Decided: r, Receipt: receipt, Row: bytes.Clone(value)})
	})
}

// WithReceipt replaces the receipt in a user's record of a bundle.
func WithReceipt(value, receipt []byte) ([]byte, error) {
	s, err := ReadSaved(value)
	if err != nil {
		return nil, err
	}
	s.Receipt = receipt
	return json.Marshal(s)
}

// EachSold calls f with each of a seller's settled contracts, archived ones included.
func EachSold(t protocol.Tables, f func(DecidedContract) error) error {
	receipts := map[string]savedReceipt{}
	for _, table := range []struct {
		name string
		read func(key string, value []byte) error
	}{
		{TableReceipts, decoding(func(key string, r savedReceipt) error { receipts[key] = r; return nil })},
		{TableSales, decoding(func(key string, s savedSale) error {
			if r, decided := receipts[key]; decided {
				return f(soldContract(key, s, r))
			}
			return nil
		})},
		{TablePast, decoding(func(key string, past pastDeal) error {
			return f(soldContract(PastContract(key), past.Sale, past.Receipt))
		})},
	} {
		if err := t.Each(table.name, table.read); err != nil {
			return err // f's own, perhaps
		}
	}
	return nil
}

// EachVoid calls f with each contract of a seller that a bank has voided at an instant or
// later. Of these the seller keeps only the receipt.
func EachVoid(t protocol.Tables, since time.Time, f func(DecidedContract) error) error {
	return t.Each(TableVoids, func(key string, der []byte) error {
		r, err := contract.ReadReceipt(der)
		if err != nil || r.Time.Before(since) {
			return err
		}
		return f(DecidedContract{Key: key, Decided: r, Receipt: bytes.Clone(der)})
	})
}

func soldContract(key string, s savedSale, r savedReceipt) DecidedContract {
	return DecidedContract{Key: key, Bundle: s.User, SignedAt: s.Countersigned, Decided: r.Receipt, Receipt: r.Signed, Sale: s.Seller}
}

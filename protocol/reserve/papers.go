package reserve

import (
	"encoding/json"
	"fmt"
	"time"

	"ramp/protocol"
)

// Papers are a contract that a bank has decided, as a journal has them: what the user
// signed, and the bank's receipt, both as DER. They were verified when they were saved.
type Papers struct {
	Key      string // of the record
	Bundle   []byte
	SignedAt time.Time // when the bundle's signatures were good
	Decided  protocol.Receipt
	Receipt  []byte
	Sale     []byte // of a seller: the bundle as it signed it too
}

// Since reports whether the bank decided anything of it at an instant or later.
func (p Papers) Since(at time.Time) bool {
	for _, f := range p.Decided.Refunds {
		if !f.Time.Before(at) {
			return true
		}
	}
	for _, e := range p.Decided.Ends {
		if !e.Time.Before(at) {
			return true
		}
	}
	return !p.Decided.Time.Before(at)
}

// EachBought calls f with the papers of a user's decided contracts.
func EachBought(t protocol.Tables, f func(Papers) error) error {
	list, err := laterOnes(t, "")
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
		return f(Papers{Key: key, Bundle: s.Bundle, SignedAt: s.SignedAt, Decided: r, Receipt: receipt})
	})
}

// WithReceipt is a user's record of a bundle with another receipt of its bank.
func WithReceipt(value, receipt []byte) ([]byte, error) {
	s, err := ReadSaved(value)
	if err != nil {
		return nil, err
	}
	s.Receipt = receipt
	return json.Marshal(savedBundle(s))
}

// EachSold calls f with the papers of a seller's decided contracts, the ones that are
// over too.
func EachSold(t protocol.Tables, f func(Papers) error) error {
	receipts := map[string]savedReceipt{}
	err := t.Each(TableReceipts, func(key string, value []byte) error {
		var r savedReceipt
		if err := json.Unmarshal(value, &r); err != nil {
			return fmt.Errorf("receipt of %s: %w", key, err)
		}
		receipts[key] = r
		return nil
	})
	if err != nil {
		return err
	}
	err = t.Each(TableSales, func(key string, value []byte) error {
		r, decided := receipts[key]
		if !decided {
			return nil
		}
		var s savedSale
		if err := json.Unmarshal(value, &s); err != nil {
			return fmt.Errorf("sale of %s: %w", key, err)
		}
		return f(soldPapers(key, s, r))
	})
	if err != nil {
		return err
	}
	return t.Each(TablePast, func(key string, value []byte) error {
		var past pastDeal
		if err := json.Unmarshal(value, &past); err != nil {
			return fmt.Errorf("past contract %s: %w", key, err)
		}
		return f(soldPapers(key, past.Sale, past.Receipt))
	})
}

func soldPapers(key string, s savedSale, r savedReceipt) Papers {
	return Papers{Key: key, Bundle: s.User, SignedAt: s.Countersigned, Decided: r.Receipt, Receipt: r.Signed, Sale: s.Seller}
}

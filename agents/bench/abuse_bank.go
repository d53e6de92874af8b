package bench

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"ramp/agents/config"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/bank/voids"
	"ramp/protocol"
)

// KeptAtBank is what void contracts of one user leave at their bank.
type KeptAtBank struct {
	Allowance int `json:"allowance"`    // contracts of one user and day that get an entry each
	Entry     int `json:"entry_bytes"`  // of records for each of these
	Beyond    int `json:"beyond_bytes"` // of records for all the others together
}

// measureBank has one user make n contracts beyond its allowance.
func measureBank(n int) (k KeptAtBank, err error) {
	dir, err := os.MkdirTemp("", "ramp-bench-")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(dir)
	now := time.Now()
	keys, err := newBenchKeys(2, now)
	if err != nil {
		return k, err
	}
	db, err := ledgerdb.Open(filepath.Join(dir, config.LedgerName))
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	l, err := ledger.Load(ledger.Config{Bank: keys.bank.ID, Currencies: []string{benchCurrency}}, now, db)
	if err != nil {
		return k, err
	}
	flood := func(n int, after time.Duration) (int, error) {
		var all []protocol.Record
		for range n {
			s := keys.bundle(now).Sale
			b := s.Bundle
			b.User, b.SettleBy = keys.accounts[0], now.Add(time.Minute)
			_, records, err := l.Void(now.Add(after), s.Verified.ID, b, b.User)
			if err != nil {
				return 0, err
			}
			all = append(all, records...)
		}
		if err := db.Append(all); err != nil {
			return 0, err
		}
		return storedIn(db)
	}
	first, err := flood(voids.Allowance, 0)
	if err != nil {
		return k, err
	}
	then, err := flood(n, time.Minute)
	return KeptAtBank{Allowance: voids.Allowance, Entry: first / voids.Allowance, Beyond: then - first}, err
}

// storedIn are the bytes of a bank's records.
func storedIn(db *ledgerdb.DB) (n int, err error) {
	tables, err := db.Tables()
	for _, table := range tables {
		err = errors.Join(err, db.Each(table, func(key string, value []byte) error { n += len(key) + len(value); return nil }))
	}
	return n, err
}

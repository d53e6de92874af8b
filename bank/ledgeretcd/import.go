package ledgeretcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// An import writes a row into the mirror at its beginning and removes it at its end: an
// agent that finds the row does not lead.
const (
	unfinishedKey = "unfinished"
	importOctets  = 8 << 20 // of the records of one entry
	importRecords = 1 << 17
)

// Errors of an import.
var (
	// ErrNotEmpty: the cluster has a journal of this bank already.
	ErrNotEmpty = errors.New("the cluster has a ledger of this bank already")
	// ErrUnfinished: an import was interrupted, and the ledger in the cluster is incomplete.
	ErrUnfinished = errors.New("the ledger in the cluster is unfinished: a restore into it was interrupted")
)

// Import copies a ledger from a file to a cluster that has none of this bank: the same
// entries, with the same log. It does not copy heads; the next leader signs one. Nobody
// leads before it has ended.
func Import(ctx context.Context, cfg Config, from *ledgerdb.DB) (err error) {
	cfg.Sign = nil // the log is not whole before the last entry
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.next != 1 {
		return fmt.Errorf("%w: %d entries of its journal", ErrNotEmpty, s.next-1)
	}
	b := batch{store: s, records: []protocol.Record{{Table: positionTable, Key: unfinishedKey, Value: []byte{1}}}}
	tables, err := from.Tables()
	if err != nil {
		return err
	}
	for _, name := range tables {
		if name == positionTable {
			continue // of another journal
		}
		if err := from.Each(name, func(key string, value []byte) error { return b.add(name, key, value) }); err != nil {
			return err
		}
	}
	b.records = append(b.records, protocol.Record{Table: positionTable, Key: unfinishedKey})
	return b.flush()
}

// batch gathers the records of the next entry.
type batch struct {
	store   *Store
	records []protocol.Record
	octets  int
}

// add copies a row, which a table lends only for the call.
func (b *batch) add(table, key string, value []byte) error {
	b.records = append(b.records, protocol.Record{Table: table, Key: strings.Clone(key), Value: append([]byte{}, value...)})
	if b.octets += len(table) + len(key) + len(value); b.octets < importOctets && len(b.records) < importRecords {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	err := b.store.Append(b.records)
	b.records, b.octets = nil, 0
	return err
}

// finished checks that no import was interrupted.
func (s *Store) finished() error {
	return s.db.Each(positionTable, func(key string, _ []byte) error {
		if key == unfinishedKey {
			return ErrUnfinished
		}
		return nil
	})
}

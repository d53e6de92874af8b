package ledgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/audit"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/bank/sold"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// SignHeads makes appends sign heads from now on, at most every 100 ms, and SealHead.
func (db *DB) SignHeads(sign Sign) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sign = sign
}

// SealHead signs a head if there are entries without one. The owner of the ledger calls
// it at least each second.
func (db *DB) SealHead(now time.Time) error { return db.seal(now, (*logbook).unsigned) }

// freshHead signs a head if the last one has fewer entries, or is too old for a proof.
func (db *DB) freshHead(now time.Time) error {
	return db.seal(now, func(l *logbook) bool {
		return l.unsigned() || l.tree.Size() > 0 && now.Sub(l.head.Time) >= headAge
	})
}

func (db *DB) seal(now time.Time, due func(l *logbook) bool) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.sealIf(now, due)
}

// sealIf is seal for a caller that has locked the ledger.
func (db *DB) sealIf(now time.Time, due func(l *logbook) bool) error {
	old := db.log.Load()
	if !due(old) {
		return nil
	}
	if db.sign == nil {
		return errNoSigner
	}
	return db.update(func(tx *boltfile.Tx) (*logbook, error) {
		next := *old
		if err := next.seal(tx, db.sign, now); err != nil {
			return nil, err
		}
		return &next, db.finish(tx, &next, nil, true)
	})
}

func (db *DB) enter(tx *boltfile.Tx, records []protocol.Record) (*logbook, error) {
	l := db.log.Load()
	d := l.digest
	if err := put(tx, records, d.note); err != nil {
		return nil, err
	}
	next, err := l.extend(tx, records, d)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	sealed := db.sign != nil && next.due(now)
	if sealed {
		if err := next.seal(tx, db.sign, now); err != nil {
			return nil, err
		}
	}
	return next, db.finish(tx, next, records, sealed)
}

// ErrNoEntry: the ledger has no such entry or decision.
var ErrNoEntry = errors.New("not in the ledger")

// ProveContract proves the decision about a contract with its refunds and ends, and that
// the log grew from one of size from (0: no such proof), under a head that is at most
// 30 s old.
func (db *DB) ProveContract(id protocol.ContractID, from uint64, now time.Time) (audit.Document, error) {
	found, err := db.Outcome(id)
	if err != nil {
		return audit.Document{}, err
	}
	if !found.Found {
		return audit.Document{}, fmt.Errorf("contract %s: %w", id, ErrNoEntry)
	}
	numbers := []uint64{found.Receipt.Entry}
	for _, r := range found.Receipt.Refunds {
		numbers = append(numbers, r.Entry)
	}
	for _, u := range found.Receipt.Ends {
		numbers = append(numbers, u.Entry)
	}
	slices.Sort(numbers)
	return db.Prove(slices.Compact(numbers), from, now)
}

// Prove proves that entries, in rising order, are in the log, and that it grew from one
// of size from; without entries it returns the newest head.
func (db *DB) Prove(numbers []uint64, from uint64, now time.Time) (audit.Document, error) {
	if err := db.freshHead(now); err != nil {
		return audit.Document{}, err
	}
	l := db.log.Load() // every later transaction has its tiles
	var d audit.Document
	if l.heads == 0 {
		return d, fmt.Errorf("the log has no head yet: %w", ErrNoEntry)
	}
	if from > l.head.Size {
		from = 0 // growth from there cannot be proved; the head shows that
	}
	err := db.bolt.Look(func(tx *bbolt.Tx) (err error) {
		d, err = l.document(openBook(tx), numbers, from)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("prove from ledger %s: %w", db.path, err)
	}
	return d, nil
}

func (l *logbook) document(b book, numbers []uint64, from uint64) (audit.Document, error) {
	d := audit.Document{Version: audit.DocumentVersion, From: from}
	d.Head = append(d.Head, b.log.Bucket([]byte(headsBucket)).Get(binary.BigEndian.AppendUint64(nil, l.heads))...)
	if len(d.Head) == 0 {
		return d, fmt.Errorf("%w: head %d is missing", boltfile.ErrDamaged, l.heads)
	}
	var err error
	if d.Growth, err = l.tree.Growth(from, l.head.Size, b); err != nil {
		return d, err
	}
	for _, n := range numbers {
		v, err := b.entry(n)
		if err != nil {
			return d, err
		}
		path, err := l.tree.Inclusion(n, l.head.Size, b)
		if err != nil {
			return d, err
		}
		d.Entries = append(d.Entries, audit.Proven{Number: n, Record: append([]byte(nil), v...), Path: path})
	}
	return d, nil
}

// Head is the last signed head, if there is one.
func (db *DB) Head() (h contract.Head, ok bool) {
	l := db.log.Load()
	return l.head, l.heads > 0
}

// Party reports whether an agent is the user or a seller of a contract that was decided.
// A void contract has only its user; one without a decision has no party.
func (db *DB) Party(id protocol.ContractID, who protocol.AgentID) (bool, error) {
	found, err := db.Outcome(id)
	if err != nil || !found.Found {
		return false, err
	}
	if found.Receipt.User == who {
		return true, nil
	}
	if sold, err := db.soldIn(found.Receipt.Entry, who); sold || err != nil {
		return sold, err
	}
	es, err := db.Entries(found.Receipt.Entry, 1) // from before the ledger kept sales
	if err != nil || len(es) == 0 {
		return false, err
	}
	return slices.ContainsFunc(es[0].Legs, func(l ledger.Leg) bool { return l.Account == who }), nil
}

// soldIn reports whether an agent sold something in the bundle that an entry settled.
// The entry itself has only the user's legs if the bundle is paid after the fact.
func (db *DB) soldIn(entry uint64, who protocol.AgentID) (did bool, err error) {
	err = db.view(func(h history) error {
		key := ledger.NumberKey(entry)
		v := h.get(ledger.TableSales, key)
		if v == nil {
			return nil
		}
		_, s, err := sold.Decode(key, v)
		_, did = s.By(who)
		return err
	})
	return did, err
}

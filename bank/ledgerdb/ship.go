package ledgerdb

import (
	"encoding/binary"
	"fmt"

	"ramp/bank/boltfile"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// A ledger can have copies elsewhere: the leader ships the records that it is about to save, and
// its followers apply them. All files then have the same entries, the same log and the same heads.

// Ship takes the records and the signed head (or nil) of a transaction when only the disk
// can still refuse it. If Ship fails, nothing is saved; note is records to save besides,
// in tables that the ledger does not know.
type Ship func(records []protocol.Record, head []byte) (note []protocol.Record, err error)

// ShipTo ships every transaction from now on; nil stops that.
func (db *DB) ShipTo(ship Ship) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.ship = ship
}

// finish ships a transaction and stores the state of the log.
func (db *DB) finish(tx *boltfile.Tx, l *logbook, records []protocol.Record, sealed bool) error {
	if db.ship == nil {
		return l.store(tx)
	}
	var head []byte
	if sealed {
		head = openBook(tx.Tx).log.Bucket([]byte(headsBucket)).Get(binary.BigEndian.AppendUint64(nil, l.heads))
	}
	note, err := db.ship(records, head)
	if err != nil {
		return err
	}
	db.shipped = true
	if err := put(tx, note, l.digest.note); err != nil {
		return err
	}
	return l.store(tx)
}

// Apply saves shipped records and their head (or nil), which must belong to the log with
// these records.
func (db *DB) Apply(records []protocol.Record, head []byte) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.update(func(tx *boltfile.Tx) (*logbook, error) {
		l := db.log.Load()
		d := l.digest
		if err := put(tx, records, d.note); err != nil {
			return nil, err
		}
		next, err := l.extend(tx, records, d)
		if err != nil {
			return nil, err
		}
		if head != nil {
			if err := next.follow(tx, head); err != nil {
				return nil, err
			}
		}
		return next, next.store(tx)
	})
}

// follow stores a head that the leader signed, which must be the next of this log.
func (l *logbook) follow(tx *boltfile.Tx, der []byte) error {
	h, _, err := contract.ReadHead(der)
	if err != nil {
		return err
	}
	want, err := l.next(tx, h.Time)
	if err != nil {
		return err
	}
	if h != want {
		return fmt.Errorf("the head of %d entries signed %s is not the next of this log: %+v, want %+v", h.Size, h.Time, h, want)
	}
	return l.seal(tx, func(contract.Head) ([]byte, error) { return der, nil }, h.Time)
}

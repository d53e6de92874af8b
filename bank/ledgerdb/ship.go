package ledgerdb

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// A ledger may be kept elsewhere too: who leads ships what it is about to save,
// and who follows applies what was shipped. Both files then have the same
// entries, the same log and the same heads.

// Ship is given the records and the signed head (nil: none) of a transaction once
// nothing but the disk can refuse it any more. If it fails, nothing is saved;
// note is what to save besides, of tables that the ledger does not know.
type Ship func(records []protocol.Record, head []byte) (note []protocol.Record, err error)

// ShipTo lets every transaction from now on be shipped; nil: none.
func (db *DB) ShipTo(ship Ship) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.ship = ship
}

// finish ships a transaction and stores where the log stands.
func (db *DB) finish(tx *bbolt.Tx, l *logbook, records []protocol.Record, sealed bool) error {
	if db.ship == nil {
		return l.store(tx)
	}
	var head []byte
	if sealed {
		head = openBook(tx).headAt(l.heads)
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

// headAt is a signed head; nil: it is not there.
func (b book) headAt(number uint64) []byte {
	return b.log.Bucket(headsBucket).Get(binary.BigEndian.AppendUint64(nil, number))
}

// Apply saves what another has shipped: records and a head (nil: none). A head
// must be of the log as it stands with these records.
func (db *DB) Apply(records []protocol.Record, head []byte) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.update(func(tx *bbolt.Tx) (*logbook, error) {
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

// follow keeps a head that another signed, which must be the next of this log.
func (l *logbook) follow(tx *bbolt.Tx, der []byte) error {
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

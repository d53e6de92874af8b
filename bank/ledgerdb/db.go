// Package ledgerdb keeps a bank's ledger in one bbolt file.
//
// What Append has returned for is on the disk, all of it; what it has refused
// is not there at all. Live tables are read through Each; history — entries,
// statements, outcomes that have left the ledger's memory — is read by
// look-ups, never by scans, and while the ledger goes on.
//
// One Append is one transaction and one flush of the disk: whoever has many
// decisions to save puts the records of all of them into one call.
//
// Only one process can have the file open. A second one is told which.
package ledgerdb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// Sizes of the file and its mapping.
const (
	initialMap  = 1 << 30  // address space, not memory: the mapping need not grow under readers
	growBy      = 64 << 20 // the file grows by this much at a time
	fullPages   = 0.95     // of a table that only grows at its end
	maxTables   = 64
	maxTableLen = 64 // bytes of a table's name
)

var (
	tablesBucket = []byte("tables")
)

// ErrUncertain is returned by Append once the disk has failed between writing
// and confirming, or after it was shipped: what is there cannot be known until
// the file is opened again.
const ErrUncertain protocol.Uncertain = "disk failed while confirming a write: open the ledger again"

// form is that of a ledger's file.
var form = boltfile.Form{
	Name: "ledger", Format: "ramp ledger", Schema: 1,
	Tables:    []string{string(tablesBucket)},
	Deep:      []string{string(tablesBucket), string(logBucket)},
	Options:   bbolt.Options{FreelistType: bbolt.FreelistArrayType, InitialMmapSize: initialMap, NoStatistics: true},
	Grow:      growBy,
	BothMetas: true,
}

// DB is an open ledger file. Its methods may be called at the same time.
type DB struct {
	path string
	bolt *boltfile.File

	mu      sync.Mutex // one Append at a time; guards the four below
	broken  error
	sign    Sign
	ship    Ship
	shipped bool // the transaction that runs

	copying sync.Mutex // one Backup at a time

	log atomic.Pointer[logbook] // as of the last transaction
}

// Open opens the ledger at path, or begins a new one, readable by the owner
// only. It fails as boltfile.Form.Open does.
func Open(path string) (*DB, error) {
	b, err := form.Open(path)
	if err != nil {
		return nil, err
	}
	db := &DB{path: path, bolt: b}
	if err := db.openLog(); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), db.Close())
	}
	return db, nil
}

// Close closes the file and lets others open it.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.sign != nil {
		_ = db.sealIf(time.Now(), (*logbook).unsigned) // if not, the next to open the ledger does
	}
	return db.bolt.Close()
}

// Path is where the ledger is.
func (db *DB) Path() string { return db.path }

// Append makes records durable, in order and all or nothing (agents.Store).
func (db *DB) Append(records []protocol.Record) error {
	if len(records) == 0 {
		return nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.update(func(tx *bbolt.Tx) (*logbook, error) { return db.enter(tx, records) })
}

// update runs one transaction, which leaves the log as change says.
func (db *DB) update(change func(tx *bbolt.Tx) (*logbook, error)) error {
	if db.broken != nil {
		return db.broken
	}
	txid := 0
	db.shipped = false
	var next *logbook
	err := boltfile.Guard(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) (err error) {
			txid = tx.ID()
			next, err = change(tx)
			return err
		})
	})
	if err == nil {
		db.log.Store(next)
		return nil
	}
	if db.shipped || db.reached(txid) {
		db.broken = ErrUncertain
	}
	return fmt.Errorf("append to ledger %s: %w", db.path, errors.Join(err, db.broken))
}

// reached reports whether readers see a transaction that was not confirmed.
func (db *DB) reached(txid int) (seen bool) {
	err := boltfile.Guard(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			seen = txid != 0 && tx.ID() >= txid
			return nil
		})
	})
	return seen || err != nil
}

// put writes in order of table and key, each key once with its last record:
// the state of a transaction is the same, and neighbours share pages. note is
// told of each before it is written.
func put(tx *bbolt.Tx, records []protocol.Record, note func(*bbolt.Bucket, *protocol.Record)) error {
	tables := tx.Bucket(tablesBucket)
	order := sorted(records)
	var b *bbolt.Bucket
	open := 0
	for i, at := range order {
		r := &records[at]
		first := i == 0 || records[order[i-1]].Table != r.Table
		if first {
			var err error
			if b, err = table(tables, r.Table, open); err != nil {
				return err
			}
			open++
		}
		if i+1 < len(order) && compare(r, &records[order[i+1]]) == 0 {
			continue
		}
		note(b, r)
		if err := putOne(b, r); err != nil {
			return fmt.Errorf("table %s: %w", r.Table, err)
		}
	}
	return nil
}

func sorted(records []protocol.Record) []int {
	order := make([]int, len(records))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(compare(&records[x], &records[y]), cmp.Compare(x, y))
	})
	return order
}

func compare(x, y *protocol.Record) int {
	return cmp.Or(strings.Compare(x.Table, y.Table), strings.Compare(x.Key, y.Key))
}

func putOne(b *bbolt.Bucket, r *protocol.Record) error {
	if r.Value == nil {
		return b.Delete([]byte(r.Key))
	}
	return b.Put([]byte(r.Key), r.Value)
}

func table(tables *bbolt.Bucket, name string, open int) (*bbolt.Bucket, error) {
	if name == "" || len(name) > maxTableLen {
		return nil, fmt.Errorf("table name of %d bytes, want 1..%d", len(name), maxTableLen)
	}
	if open >= maxTables {
		return nil, fmt.Errorf("more than %d tables in one append", maxTables)
	}
	b, err := tables.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	if name == ledger.TableEntries || name == ledger.TableOutcomes || name == ledger.TableSales {
		b.FillPercent = fullPages
	}
	return b, nil
}

// Each calls f with every record of a table in order of key, until f fails
// (protocol.Tables). The value is only good during the call. f must not append.
func (db *DB) Each(name string, f func(key string, value []byte) error) error {
	return db.View(func(t protocol.Tables) error { return t.Each(name, f) })
}

// Tables are the names of all tables that have been written to, in order.
func (db *DB) Tables() (names []string, err error) {
	err = boltfile.Guard(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(tablesBucket).ForEachBucket(func(name []byte) error {
				names = append(names, string(name))
				return nil
			})
		})
	})
	return names, err
}

// View calls f with all tables as they were at one moment, while the ledger goes
// on. The file cannot use the room of old pages again until f returns.
func (db *DB) View(f func(t protocol.Tables) error) error {
	var s snapshot
	err := boltfile.GuardExcept(&s.calling, func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			s.tables = tx.Bucket(tablesBucket)
			s.calling = true
			err := f(&s)
			s.calling = false
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("read ledger %s: %w", db.path, err)
	}
	return nil
}

// snapshot are the tables of one transaction. While calling is set, a panic is
// the caller's and not the file's.
type snapshot struct {
	tables  *bbolt.Bucket
	calling bool
	value   []byte
}

// Each is DB.Each within the transaction.
func (s *snapshot) Each(name string, f func(key string, value []byte) error) error {
	s.calling = false
	err := s.each(name, f)
	s.calling = true
	return err
}

func (s *snapshot) each(name string, f func(key string, value []byte) error) error {
	b := s.tables.Bucket([]byte(name))
	if b == nil {
		return nil
	}
	return b.ForEach(func(k, v []byte) error {
		key := string(k)
		s.value = append(s.value[:0], v...) // here, where a damaged page is noticed
		s.calling = true
		err := f(key, s.value)
		s.calling = false
		return err
	})
}

// Package ledgerdb keeps a bank's ledger in one bbolt file.
//
// When Append returns without an error all of its records are on the disk; when it refuses, none
// is. Each reads the live tables. History (entries, statements, outcomes that have left the
// ledger's memory) is read by look-ups, never by scans, while appends go on.
//
// One Append is one transaction and one flush of the disk, so a caller with many
// decisions saves the records of all of them in one call.
//
// Only one process can have the file open. The error of a second one names the first.
package ledgerdb

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// Sizes of the file and its mapping.
const (
	initialMap = 1 << 30  // address space, not memory: the mapping need not grow under readers
	logSize    = 4 << 20  // of the log in front of the file
	growBy     = 64 << 20 // the file grows by this much at a time
	fullPages  = 0.95     // of a table that only grows at its end
)

const tablesBucket = "tables"

// ErrUncertain is returned by Append once it has failed after shipping: only opening the
// file again shows what it has. After protocol.ErrDisk it is the same.
const ErrUncertain protocol.Uncertain = "failed while confirming a write: open the ledger again"

// Schema is the form of a ledger's tables. It was never 3, which one flipped bit turns into an
// older form.
const Schema = 4

// form is the form of a ledger's file.
var form = boltfile.Form{
	Name: "ledger", Format: "ramp ledger", Schema: Schema,
	Tables:  []string{tablesBucket},
	Deep:    []string{tablesBucket, logBucket},
	Options: bbolt.Options{FreelistType: bbolt.FreelistArrayType, InitialMmapSize: initialMap, NoStatistics: true},
	Log:     logSize,
	Grow:    growBy,
	Strict:  true,
}

// DB is an open ledger file. Its methods may be called at the same time.
type DB struct {
	path string
	bolt *boltfile.File

	mu      sync.Mutex // one Append at a time; guards the four below
	broken  error
	sign    Sign
	ship    Ship
	shipped bool // the current transaction

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
		_ = db.sealIf(time.Now(), (*logbook).unsigned) // if it fails, the next to open the ledger does it
	}
	return db.bolt.Close()
}

// Suspect reports whether the disk failed under the ledger, and it was not audited since.
func (db *DB) Suspect() bool { return db.bolt.Suspect() }

// Audited notes that a suspect ledger has passed its audit.
func (db *DB) Audited() error { return db.bolt.Audited() }

// Path is the path of the ledger.
func (db *DB) Path() string { return db.path }

// Append makes records durable, in order and all or nothing (agents.Store).
func (db *DB) Append(records []protocol.Record) error {
	if len(records) == 0 {
		return nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.update(func(tx *boltfile.Tx) (*logbook, error) { return db.enter(tx, records) })
}

// update runs one transaction, which leaves the log as change says.
func (db *DB) update(change func(tx *boltfile.Tx) (*logbook, error)) error {
	if db.broken != nil {
		return db.broken
	}
	db.shipped = false
	var next *logbook
	uncertain, err := db.bolt.Write(func(tx *boltfile.Tx) (err error) {
		next, err = change(tx)
		return err
	})
	if err == nil {
		db.log.Store(next)
		return nil
	}
	switch {
	case uncertain:
		db.broken = protocol.ErrDisk
	case db.shipped:
		db.broken = ErrUncertain
	}
	return fmt.Errorf("append to ledger %s: %w", db.path, errors.Join(err, db.broken))
}

// put writes in order of table and key, each key once with its last record: the state of a
// transaction is the same, and neighbours share pages. It calls note before it writes each.
func put(tx *boltfile.Tx, records []protocol.Record, note func(*boltfile.Bucket, *protocol.Record)) error {
	order := sorted(records)
	var b *boltfile.Bucket
	open := 0
	for i, at := range order {
		r := &records[at]
		first := i == 0 || records[order[i-1]].Table != r.Table
		if first {
			var err error
			if b, err = table(tx, r.Table, open); err != nil {
				return err
			}
			open++
		}
		if i+1 < len(order) && compare(r, &records[order[i+1]]) == 0 {
			continue
		}
		note(b, r)
		if err := b.Set(r.Key, r.Value); err != nil {
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

func table(tx *boltfile.Tx, name string, open int) (*boltfile.Bucket, error) {
	b, err := tx.Table(tablesBucket, name, open)
	if err != nil {
		return nil, err
	}
	if name == ledger.TableEntries || name == ledger.TableOutcomes || name == ledger.TableSales {
		b.FillPercent = fullPages
	}
	return b, nil
}

// Each calls f with every record of a table (protocol.Tables).
func (db *DB) Each(name string, f func(key string, value []byte) error) error {
	return reading(db.path, db.bolt.Each(tablesBucket, name, f))
}

// Get is the value of a key (protocol.Tables).
func (db *DB) Get(name, key string) (value []byte, err error) {
	err = db.bolt.LookTables(tablesBucket, func(t *boltfile.Tables) error {
		value, err = t.Get(name, key)
		return err
	})
	return value, reading(db.path, err)
}

// Tables are the names of all tables that have been written to, in order.
func (db *DB) Tables() (names []string, err error) {
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(tablesBucket)).ForEachBucket(func(name []byte) error {
			names = append(names, string(name))
			return nil
		})
	})
	return names, err
}

// View calls f with all tables as they were at one moment, while appends go on. The file
// cannot reuse old pages until f returns.
func (db *DB) View(f func(t protocol.Tables) error) error {
	return reading(db.path, db.bolt.ViewTables(tablesBucket, func(t *boltfile.Tables) error { return f(t) }))
}

func reading(path string, err error) error {
	if err != nil {
		return fmt.Errorf("read ledger %s: %w", path, err)
	}
	return nil
}

// tmpfsMagic and ramfsMagic are Linux's numbers for file systems in memory.
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// InMemory reports whether a file at path would be in memory, so that flushing it means
// nothing. The file need not exist; its directory must.
func InMemory(path string) (bool, error) {
	var fs syscall.Statfs_t
	dir := filepath.Dir(path)
	if err := syscall.Statfs(dir, &fs); err != nil {
		return false, fmt.Errorf("file system of %s: %w", dir, err)
	}
	return fs.Type == tmpfsMagic || fs.Type == ramfsMagic, nil
}

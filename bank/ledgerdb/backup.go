package ledgerdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
)

// compactStep bounds what one transaction of Compact copies; the copy grows by
// compactGrow at a time.
const (
	compactStep = 16 << 20
	compactGrow = 1 << 20
)

// Since is the number of the first entry at or after a time, or the next number if there
// is no such entry.
func (db *DB) Since(t time.Time) (n uint64, err error) {
	err = db.view(func(h history) error {
		n, err = h.since(t)
		return err
	})
	return n, err
}

// Backup copies the ledger, as it is at one moment, to a new file, and returns its number
// of entries; appends go on meanwhile. The file is complete and durable, or missing. It
// does not replace a file (fs.ErrExist), and makes one copy at a time.
func (db *DB) Backup(path string) (entries uint64, err error) {
	db.copying.Lock() // two copies to one path would write the same file
	defer db.copying.Unlock()
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("backup %s: %w", path, fs.ErrExist)
	}
	fresh := path + ".new"
	err = db.copyTo(fresh, &entries)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("backup %s: %w", path, err), removed(fresh))
	}
	return entries, boltfile.SyncDir(path)
}

func (db *DB) copyTo(path string, entries *uint64) error {
	if err := removed(path); err != nil { // of a copy that was interrupted; a link is not followed
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		s, err := decodeLogState(tx.Bucket([]byte(logBucket)).Get(logStateKey))
		if err != nil {
			return err
		}
		*entries = s.size
		if _, err = tx.WriteTo(f); err != nil || tx.ID()%2 == 0 {
			return err
		}
		// bbolt writes the newer description first, but its next transaction goes where its number
		// says: of an odd one, the first would be overwritten, and the older one stay.
		return boltfile.SwapMetas(f, tx.DB().Info().PageSize)
	})
	return errors.Join(err, f.Sync(), f.Close())
}

// Compact rewrites the ledger at path without its unused pages, and returns the old and
// the new length of the file. No process may have it open. The old file stays until the
// new one is complete and has been read.
func Compact(path string) (before, after int64, err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a link stays one
	}
	db, err := Open(path)
	if err != nil {
		return 0, 0, err
	}
	fresh := path + ".compact"
	if before, err = sizeOf(path); err == nil {
		err = errors.Join(removed(fresh), db.compactTo(fresh))
	}
	if err == nil {
		after, err = sizeOf(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("compact ledger %s: %w", path, err), removed(fresh), db.Close())
	}
	return before, after, errors.Join(boltfile.SyncDir(path), db.Close())
}

// compactTo copies every row, and then counts the rows of the copy.
func (db *DB) compactTo(path string) error {
	b, err := form.Bare(path)
	if err != nil {
		return err
	}
	b.AllocSize = compactGrow
	err = db.bolt.CompactTo(b, compactStep)
	if err == nil {
		err = boltfile.Guard(func() error { return b.Update(db.adopt) })
	}
	return errors.Join(err, b.Close())
}

// adopt ties the copy's log to the copy's last transaction, once it has found all rows.
func (db *DB) adopt(tx *bbolt.Tx) error {
	l := db.log.Load()
	d, err := digestOf(tx.Bucket([]byte(tablesBucket)))
	if err != nil {
		return err
	}
	if d != l.digest {
		return fmt.Errorf("%w: the rows sum to %016x, want %016x", boltfile.ErrDamaged, uint64(d), uint64(l.digest))
	}
	return tx.Bucket([]byte(logBucket)).Put(logStateKey, l.state(tx.ID()))
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
)

// Bounds of one transaction.
const (
	maxTables   = 64
	maxTableLen = 64 // bytes of a table's name
)

// View reads, and returns damage of the file as an error.
func (f *File) View(read func(tx *bbolt.Tx) error) error {
	return Guard(func() error { return f.DB.View(read) })
}

// Write runs one transaction. An error is certain if nothing of it is in the file: change
// failed, or the disk had no room. After any other failure of the disk the transaction may
// be in the file or not, and the file is marked, so that it is audited when it is opened.
func (f *File) Write(change func(tx *bbolt.Tx) error) (uncertain bool, err error) {
	txid, changed := 0, false
	err = Guard(func() error {
		return f.Update(func(tx *bbolt.Tx) error {
			txid = tx.ID()
			err := change(tx)
			changed = err == nil
			return err
		})
	})
	if err == nil {
		return false, nil
	}
	unread := f.View(func(tx *bbolt.Tx) error {
		uncertain = txid != 0 && tx.ID() >= txid
		return nil
	})
	if uncertain = uncertain || unread != nil || changed && !noRoom(err); uncertain {
		f.fail(err)
	}
	return uncertain, err
}

// noRoom reports whether a file could not grow. Of ftruncate's error, bbolt keeps only the
// text; it leaves the file as it was.
func noRoom(err error) bool {
	var write *fs.PathError
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	return full && errors.As(err, &write) && write.Op == "write" || strings.HasPrefix(err.Error(), "file resize error: ")
}

// marker is the file beside a file whose disk has failed.
func marker(path string) string { return path + ".failed" }

// fail marks the file. On a disk without room for another file, its lock holds the mark; on a
// read-only disk the file cannot be opened again anyway.
func (f *File) fail(why error) {
	err := os.WriteFile(marker(f.Path()), []byte(why.Error()+"\n"), 0o600)
	if _, missing := os.Stat(marker(f.Path())); err == nil || missing == nil {
		return
	}
	_, _ = f.lock.WriteAt([]byte(lockFailed), 0) // instead of the holder's name, which takes no room
	f.suspect = true
}

// Suspect reports whether the disk has failed since the file was last audited.
func (f *File) Suspect() bool {
	_, err := os.Stat(marker(f.Path()))
	return err == nil || f.suspect
}

// ReadAll reads every record.
func (f *File) ReadAll() error {
	return f.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return readAll(b) })
	})
}

func readAll(b *bbolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return readAll(b.Bucket(k))
		}
		return nil
	})
}

// Audited notes that the content of a suspect file is as it should be.
func (f *File) Audited() error {
	err := os.RemoveAll(marker(f.Path()))
	if err == nil && f.suspect {
		f.suspect = false
		nameHolder(f.lock)
	}
	return err
}

// Table opens a table in a bucket, or begins it; open is how many the transaction has
// opened.
func Table(root *bbolt.Bucket, name string, open int) (*bbolt.Bucket, error) {
	if name == "" || len(name) > maxTableLen {
		return nil, fmt.Errorf("table name of %d bytes, want 1..%d", len(name), maxTableLen)
	}
	if open >= maxTables {
		return nil, fmt.Errorf("more than %d tables in one append", maxTables)
	}
	b, err := root.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	return b, nil
}

// Put writes a value, or deletes the key if the value is nil.
func Put(b *bbolt.Bucket, key string, value []byte) error {
	if value == nil {
		return b.Delete([]byte(key))
	}
	return b.Put([]byte(key), value)
}

// Tables are the tables in one bucket of a file, as they were at one moment
// (protocol.Tables). While calling is set, a panic is the caller's and not the file's.
type Tables struct {
	root    *bbolt.Bucket
	calling bool
	value   []byte
}

// ViewTables calls f with the tables in a bucket, while others write. The file
// cannot reuse the space of old pages until f returns.
func (f *File) ViewTables(root []byte, call func(t *Tables) error) error {
	var t Tables
	return guardExcept(&t.calling, func() error {
		return f.DB.View(func(tx *bbolt.Tx) error {
			t.root = tx.Bucket(root)
			return t.outside(func() error { return call(&t) })
		})
	})
}

// outside runs code of the caller.
func (t *Tables) outside(f func() error) error {
	t.calling = true
	err := f()
	t.calling = false
	return err
}

// Each calls f with every record of a table in order of key, until f fails.
func (t *Tables) Each(name string, f func(key string, value []byte) error) (err error) {
	t.calling = false
	if b := t.root.Bucket([]byte(name)); b != nil {
		err = b.ForEach(func(k, v []byte) error {
			key := string(k)
			t.value = append(t.value[:0], v...) // here, where a damaged page is noticed
			return t.outside(func() error { return f(key, t.value) })
		})
	}
	t.calling = true
	return err
}

// Keys calls f with the key of every record of a table in order, until f fails.
func (t *Tables) Keys(name string, f func(key string) error) (err error) {
	t.calling = false
	if b := t.root.Bucket([]byte(name)); b != nil {
		err = b.ForEach(func(k, _ []byte) error {
			key := string(k)
			return t.outside(func() error { return f(key) })
		})
	}
	t.calling = true
	return err
}

// Get is a copy of the value of a key; nil: the table has no such key.
func (t *Tables) Get(name, key string) (value []byte, _ error) {
	t.calling = false
	if b := t.root.Bucket([]byte(name)); b != nil {
		value = bytes.Clone(b.Get([]byte(key)))
	}
	t.calling = true
	return value, nil
}

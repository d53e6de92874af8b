package boltfile

import (
	"bytes"
	"os"

	"go.etcd.io/bbolt"
)

// Bounds of one transaction.
const (
	maxTables   = 64
	maxTableLen = 64 // bytes of a table's name
)

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

// Tables are the tables in one bucket of a file, as they were at one moment
// (protocol.Tables). While calling is set, a panic is the caller's and not the file's.
type Tables struct {
	root    *bbolt.Bucket
	calling bool
	value   []byte
}

// ViewTables calls f with the tables in a bucket, while others write. The file
// cannot reuse the space of old pages until f returns.
func (f *File) ViewTables(root string, call func(t *Tables) error) error {
	return f.readTables(false, root, call)
}

// LookTables is ViewTables for a short look, during which nothing is written.
func (f *File) LookTables(root string, call func(t *Tables) error) error {
	return f.readTables(true, root, call)
}

func (f *File) readTables(short bool, root string, call func(t *Tables) error) error {
	var t Tables
	return guardExcept(&t.calling, func() error {
		return f.read(short, func(tx *bbolt.Tx) error {
			t.root = tx.Bucket([]byte(root))
			return t.outside(func() error { return call(&t) })
		})
	})
}

// Each calls f with every record of a table in a bucket (Tables.Each); f may read the file.
func (f *File) Each(root, name string, call func(key string, value []byte) error) error {
	var rows []func() error
	err := f.ViewTables(root, func(t *Tables) error {
		if !t.root.Writable() {
			return t.Each(name, call)
		}
		return t.Each(name, func(key string, value []byte) error { // the disk is full, and nothing can be read meanwhile
			value = bytes.Clone(value)
			rows = append(rows, func() error { return call(key, value) })
			return nil
		})
	})
	for i := 0; i < len(rows) && err == nil; i++ {
		err = rows[i]()
	}
	return err
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

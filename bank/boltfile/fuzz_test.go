package boltfile_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
)

// FuzzDamage overwrites a number anywhere in a file, or cuts it: the checks may find
// it, and must come to an end. That bbolt survives what they have passed is tried
// with the files of journals and ledgers.
func FuzzDamage(f *testing.F) {
	whole := smallFile(f)
	for at := 0; at < len(whole); at += 8 {
		f.Add(uint32(at), uint64(3), false)
	}
	f.Add(uint32(smallPages), uint64(0), true)
	f.Fuzz(func(t *testing.T, at uint32, number uint64, cut bool) {
		b := append([]byte(nil), whole...)
		n := int(at) % (len(b) - 8)
		binary.LittleEndian.PutUint64(b[n:], number)
		if cut {
			b = b[:n]
		}
		path := filepath.Join(t.TempDir(), "d.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = boltfile.CheckMetas(path)
		_ = boltfile.CheckPages(path)
		_ = boltfile.CheckTrees(path, "outer")
	})
}

// smallFile is what is used of a file with a table in a table, and branches.
func smallFile(f *testing.F) []byte {
	path := filepath.Join(f.TempDir(), "small.db")
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: smallPages, NoSync: true})
	if err != nil {
		f.Fatal(err)
	}
	var size int64
	err = b.Update(func(tx *bbolt.Tx) error {
		outer, err := tx.CreateBucket([]byte("outer"))
		if err != nil {
			return err
		}
		inner, err := outer.CreateBucket([]byte("inner"))
		for i := range 12 {
			if err == nil {
				err = inner.Put(fmt.Appendf(nil, "%02d", i), make([]byte, 150))
			}
		}
		return err
	})
	if err == nil {
		err = b.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	}
	if err == nil {
		err = b.Close()
	}
	whole, readErr := os.ReadFile(path)
	if err != nil || readErr != nil {
		f.Fatal(err, readErr)
	}
	return whole[:size]
}

package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"ramp/bank/boltfile"
)

// TestPagesAsBboltWritesThemAreSound holds that the walk of the pages cries at
// damage only: whatever is put, deleted, dropped, rolled back and copied, bbolt
// leaves no gap and nothing behind the rows.
func TestPagesAsBboltWritesThemAreSound(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "pages.db")
		defer os.Remove(path)
		size := rapid.SampledFrom([]int{1024, 4096}).Draw(t, "page size")
		b, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: size, NoSync: true, FreelistType: bbolt.FreelistArrayType})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			if err := b.Update(func(tx *bbolt.Tx) error { return changeRows(t, tx) }); err != nil && !errors.Is(err, errRolledBack) {
				t.Fatal(err)
			}
			if err := sound(path); err != nil {
				t.Fatal(err)
			}
		}
		copied := filepath.Join(dir, "copy.db")
		defer os.Remove(copied)
		if err := b.View(func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) }); err != nil {
			t.Fatal(err)
		}
		if err := sound(copied); err != nil {
			t.Fatalf("a copy: %s", err)
		}
	})
}

// sound holds that nothing at all is found.
func sound(path string) error {
	return errors.Join(boltfile.CheckMetas(path), boltfile.CheckTrees(path, "outer"), boltfile.CheckPages(path))
}

var errRolledBack = errors.New("rolled back on purpose")

// changeRows is a transaction of puts and deletes of runs of keys in a few tables,
// which lie in one another as those of a ledger do.
func changeRows(t *rapid.T, tx *bbolt.Tx) error {
	outer, err := tx.CreateBucketIfNotExists([]byte("outer"))
	if err != nil {
		return err
	}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		name := []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "table"))
		inner, err := outer.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		inner.FillPercent = rapid.SampledFrom([]float64{0.5, 0.95}).Draw(t, "fill")
		if err := changeRun(t, inner); err != nil {
			return err
		}
		if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
			if err := outer.DeleteBucket(name); err != nil {
				return err
			}
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "roll back") == 0 {
		return errRolledBack
	}
	return nil
}

func changeRun(t *rapid.T, b *bbolt.Bucket) error {
	from, n := rapid.IntRange(0, 400).Draw(t, "from"), rapid.IntRange(1, 150).Draw(t, "rows")
	length, put := rapid.SampledFrom([]int{0, 9, 150, 5000}).Draw(t, "length"), rapid.Bool().Draw(t, "put")
	for i := from; i < from+n; i++ {
		key := fmt.Appendf(nil, "%04d", i)
		var err error
		if put {
			err = b.Put(key, bytes.Repeat([]byte{0xee}, length))
		} else {
			err = b.Delete(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package boltfile_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
)

const smallPages = 1024

// layeredFile is a file of small pages: two layers of branches in a table within a
// table, one in a table, and free pages.
func layeredFile(t *testing.T) (path string, whole []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "layers.db")
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: smallPages, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(tx *bbolt.Tx) error {
		outer, err := tx.CreateBucketIfNotExists([]byte("outer"))
		if err != nil {
			return err
		}
		inner, err := outer.CreateBucketIfNotExists([]byte("inner"))
		if err != nil {
			return err
		}
		plain, err := tx.CreateBucketIfNotExists([]byte("plain"))
		for i := range 300 {
			err = errors.Join(err, inner.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 150)))
			err = errors.Join(err, plain.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 20)))
		}
		return err
	}
	if err := errors.Join(b.Update(fill), b.Update(fill), b.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sound(path); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, whole
}

// pagesOf are the numbers of the pages of a kind that the file uses.
func pagesOf(t *testing.T, path string, kind string) (ids []int) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.View(func(tx *bbolt.Tx) error {
		for id := 0; ; id++ {
			switch p, err := tx.Page(id); {
			case err != nil || p == nil:
				return err
			case p.Type == kind:
				ids = append(ids, id)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// mustFind holds that a damaged file is called so before bbolt is given it.
func mustFind(t *testing.T, path string, b []byte, what string) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := boltfile.CheckTrees(path, "outer"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestAWayThatDoesNotEndIsFound makes each branch lead to itself and to each other
// branch. bbolt would follow it until memory is used up.
func TestAWayThatDoesNotEndIsFound(t *testing.T) {
	path, whole := layeredFile(t)
	branches, tried := pagesOf(t, path, "branch"), 0
	for _, id := range branches {
		last := int(binary.LittleEndian.Uint16(whole[id*smallPages+10:])) - 1
		for _, child := range slices.Compact([]int{0, last / 2, last}) {
			for _, to := range branches {
				b := slices.Clone(whole)
				binary.LittleEndian.PutUint64(b[id*smallPages+16+16*child+8:], uint64(to))
				if slices.Equal(b, whole) {
					continue
				}
				tried++
				mustFind(t, path, b, fmt.Sprintf("child %d of page %d is page %d", child, id, to))
			}
		}
	}
	if t.Logf("%d branches, %d ways", len(branches), tried); tried < 50 {
		t.Error("too few were tried")
	}
}

// TestAListOfFreePagesThatCannotBeIsFound: bbolt would ask for as much memory as the
// list says it needs, and write over pages that it says are free.
func TestAListOfFreePagesThatCannotBeIsFound(t *testing.T) {
	path, whole := layeredFile(t)
	lists, branches, leaves := pagesOf(t, path, "freelist"), pagesOf(t, path, "branch"), pagesOf(t, path, "leaf")
	at := lists[len(lists)-1] * smallPages
	count := binary.LittleEndian.Uint16(whole[at+10:])
	if count == 0 {
		t.Fatal("nothing is free")
	}
	for _, n := range []uint64{1 << 20, 1 << 32, 1 << 40, 1 << 63} {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint16(b[at+10:], 0xffff)
		binary.LittleEndian.PutUint64(b[at+16:], n)
		mustFind(t, path, b, fmt.Sprintf("%d free pages", n))
	}
	for _, id := range slices.Concat(branches, leaves) {
		b := slices.Clone(whole)
		if !slices.Contains(freeIn(whole[at:], count), uint64(id)) {
			setFree(b[at:], count, uint64(id))
			mustFind(t, path, b, fmt.Sprintf("page %d is said to be free", id))
		}
	}
}

// freeIn are the pages that a list has.
func freeIn(list []byte, count uint16) (ids []uint64) {
	for i := range int(count) {
		ids = append(ids, binary.LittleEndian.Uint64(list[16+8*i:]))
	}
	return ids
}

// setFree puts a page into a list, in its place, for another one.
func setFree(list []byte, count uint16, id uint64) {
	ids := freeIn(list, count)
	i, _ := slices.BinarySearch(ids, id)
	ids[min(i, len(ids)-1)] = id
	for i, id := range ids {
		binary.LittleEndian.PutUint64(list[16+8*i:], id)
	}
}

// TestTheDescriptionThatBboltGoesByIsRead damages one description after the other:
// with the newer one, the file is that of the transaction before, whose pages are
// still there.
func TestTheDescriptionThatBboltGoesByIsRead(t *testing.T) {
	path, whole := layeredFile(t)
	for i := range 2 {
		b := slices.Clone(whole)
		b[i*smallPages+16+20] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := boltfile.CheckTrees(path, "outer"); err != nil {
			t.Errorf("description %d is damaged: %s", i, err)
		}
		if err := boltfile.CheckMetas(path); err == nil {
			t.Errorf("description %d is damaged, and nothing was said", i)
		}
	}
}

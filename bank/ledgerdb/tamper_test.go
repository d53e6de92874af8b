package ledgerdb_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/ledgerdb"
)

const sectorSize = 512 // what a disk writes whole

// tampering is one way in which a file was changed.
type tampering struct {
	what string
	file []byte
}

// tamperings are all ways to truncate a file, to tear a page, to take two pages
// for each other and to put one in place of another. older is the file some appends
// before.
func tamperings(whole, older []byte) iter.Seq[tampering] {
	return func(yield func(tampering) bool) {
		for _, kind := range []func([]byte, []byte, func(tampering) bool) bool{truncated, torn, reordered, replaced} {
			if !kind(whole, older, yield) {
				return
			}
		}
	}
}

func truncated(whole, _ []byte, yield func(tampering) bool) bool {
	for n := 0; n < len(whole); n += sectorSize {
		if !yield(tampering{fmt.Sprintf("truncated to %d octets", n), whole[:n]}) {
			return false
		}
	}
	return true
}

// torn are pages of which only the first sectors were written: behind them is what
// was there before, or nothing.
func torn(whole, older []byte, yield func(tampering) bool) bool {
	for at := sectorSize; at < len(whole); at += sectorSize {
		end := at - at%smallPages + smallPages
		if at%smallPages == 0 || end > len(whole) {
			continue
		}
		for what, before := range map[string][]byte{"nothing": make([]byte, len(whole)), "what was there": older} {
			if end > len(before) {
				continue
			}
			b := slices.Concat(whole[:at], before[at:end], whole[end:])
			if !yield(tampering{fmt.Sprintf("page %d torn at %d, with %s behind it", at/smallPages, at%smallPages, what), b}) {
				return false
			}
		}
	}
	return true
}

func page(file []byte, n int) []byte { return file[n*smallPages : (n+1)*smallPages] }

func reordered(whole, _ []byte, yield func(tampering) bool) bool {
	for p := range len(whole) / smallPages {
		for q := range p {
			b := slices.Clone(whole)
			copy(page(b, p), page(whole, q))
			copy(page(b, q), page(whole, p))
			if !yield(tampering{fmt.Sprintf("pages %d and %d for each other", q, p), b}) {
				return false
			}
		}
	}
	return true
}

func replaced(whole, older []byte, yield func(tampering) bool) bool {
	for p := range len(whole) / smallPages {
		for _, from := range [][]byte{whole, older} {
			for q := range len(from) / smallPages {
				b := slices.Clone(whole)
				copy(page(b, p), page(from, q))
				if !yield(tampering{fmt.Sprintf("page %d in place of page %d", q, p), b}) {
					return false
				}
			}
		}
	}
	return true
}

// twoStates makes a small bank's file and gives it as it is, and as it was some
// appends before.
func twoStates(t *testing.T, s signer, path string) (whole, older []byte) {
	t.Helper()
	d := smallBank(t, s, path)
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.now = d.now.Add(time.Second)
		d.trade(t, d.agents[0], d.agents[1], 1, 2)
		d.flush(t)
		if err := d.db.SealHead(time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.db.Tables(); err != nil { // which puts all that is in the log into the file
			t.Fatal(err)
		}
	}
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	whole = usedPart(t, path)
	return whole, older[:min(len(older), len(whole))]
}

// TestEveryTamperedFileIsFound truncates, tears, reorders and replaces the pages of
// a small bank's file in every way (with -short: every 7th). What changes a page in
// use is found when the file is opened or audited; the rest leaves every answer as
// it was. RAMP_FLIPS=all takes a larger bank.
func TestEveryTamperedFileIsFound(t *testing.T) {
	notUnderRace(t)
	t.Parallel()
	s := newSigner(t)
	path := filepath.Join(quickDir(t), "ledger.db")
	whole, older := twoStates(t, s, path)
	found, want := examine(path, s)
	if found {
		t.Fatal("the file is not right to begin with")
	}
	used := pagesInUse(t, path, len(whole))
	ways, caught, idle := 0, 0, 0
	for c := range tamperings(whole, older) {
		if ways++; testing.Short() && ways%7 != 0 || slices.Equal(c.file, whole) {
			continue
		}
		rewrite(t, path, c.file)
		bad, answers := examine(path, s)
		switch {
		case bad:
			caught++
		case touches(whole, c.file, used):
			t.Errorf("%s: not found", c.what)
		case answers != want:
			t.Errorf("%s: not found, and other answers", c.what)
		default:
			idle++
		}
	}
	t.Logf("%d ways that change the file, %d found, %d in free pages alone, without effect", caught+idle, caught, idle)
	if caught == 0 {
		t.Error("nothing was found: nothing was tried")
	}
}

// touches reports whether a page in use is not what it was.
func touches(whole, file []byte, used map[int]bool) bool {
	for p := range len(whole) / smallPages {
		if used[p] && (len(file) < (p+1)*smallPages || !slices.Equal(page(whole, p), page(file, p))) {
			return true
		}
	}
	return false
}

// TestEveryTamperedRowIsFound removes each row, and puts the value of another row of
// the same table in its place, with all pages and checksums of the file right, and
// the number of the transaction as it was. With -short it is every 11th way.
func TestEveryTamperedRowIsFound(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	path := filepath.Join(quickDir(t), "ledger.db")
	whole, _ := twoStates(t, s, path)
	rows := rowsOf(t, path)
	tried := 0
	for i, r := range rows {
		for kind, value := range [][]byte{nil, rows[(i+1)%len(rows)].value, rows[(i+len(rows)-1)%len(rows)].value} {
			if testing.Short() && (3*i+kind)%11 != 0 || slices.Equal(value, r.value) {
				continue
			}
			rewrite(t, path, whole)
			tamperRow(t, path, r, value)
			tried++
			if found, _ := examine(path, s); !found {
				t.Errorf("%s %x: %x in place of %x is not found", r.path, r.key, value, r.value)
			}
		}
	}
	t.Logf("%d rows, %d ways tried", len(rows), tried)
}

// rewrite makes the file another one: bbolt may still have a damaged one locked that
// it could not open.
func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// storedRow is a row of a bucket of the file.
type storedRow struct {
	path       []string
	key, value []byte
}

// rowsOf are all rows of a file.
func rowsOf(t *testing.T, path string) (rows []storedRow) {
	t.Helper()
	inFile(t, path, func(tx *bbolt.Tx) error {
		var walk func(b *bbolt.Bucket, path []string) error
		walk = func(b *bbolt.Bucket, path []string) error {
			return b.ForEach(func(k, v []byte) error {
				if v == nil {
					return walk(b.Bucket(k), append(slices.Clone(path), string(k)))
				}
				rows = append(rows, storedRow{path, slices.Clone(k), slices.Clone(v)})
				return nil
			})
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return walk(b, []string{string(name)}) })
	})
	return rows
}

// tamperRow changes one row, and the log's note of the transaction that wrote it
// with it, so that only what the rows say can give it away.
func tamperRow(t *testing.T, path string, r storedRow, value []byte) {
	t.Helper()
	inFile(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(r.path[0]))
		for _, name := range r.path[1:] {
			b = b.Bucket([]byte(name))
		}
		if value == nil {
			if err := b.Delete(r.key); err != nil {
				return err
			}
		} else if err := b.Put(r.key, value); err != nil {
			return err
		}
		log := tx.Bucket([]byte("log"))
		state := slices.Clone(log.Get([]byte("state")))
		if len(state) != ledgerdb.LogStateSize {
			return nil // it is the row that was changed
		}
		ledgerdb.SetLogTransaction(state, uint64(tx.ID()))
		return log.Put([]byte("state"), state)
	})
}

func inFile(t *testing.T, path string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Update(f); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

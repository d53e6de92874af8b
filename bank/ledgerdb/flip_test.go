package ledgerdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// contents is all that a ledger can answer from.
func contents(db *ledgerdb.DB) (string, error) {
	var b bytes.Buffer
	err := db.View(func(t protocol.Tables) error {
		for _, table := range []string{
			ledger.TableState, ledger.TableAccounts, ledger.TableLines, ledger.TableBalances, ledger.TableHolds, ledger.TableGathering,
			ledger.TableCopies, ledger.TableOutcomes, ledger.TableEntries, ledger.TableIndex, ledger.TableContracts, ledger.TableRefunds,
			ledger.TableSales, ledger.TableSoldBy, ledger.TableSoldFrom,
		} {
			err := t.Each(table, func(k string, v []byte) error {
				fmt.Fprintf(&b, "%s %x %x\n", table, k, v)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	h, _ := db.Head()
	fmt.Fprintln(&b, h)
	return b.String(), err
}

// examine opens a ledger file as the offline audit does: found says whether
// anything was found to be wrong.
func examine(path string, s signer) (found bool, answers string) {
	db, err := ledgerdb.Open(path)
	if errors.Is(err, bolterrors.ErrTimeout) {
		panic("the file is still locked by an earlier look at it: nothing was examined")
	}
	if err != nil {
		return true, ""
	}
	defer db.Close()
	r, log, err := db.AuditAll(true, s.open, nil)
	if err != nil || len(r.Bad) > 0 || len(log.Bad) > 0 {
		return true, ""
	}
	answers, err = contents(db)
	return err != nil, answers
}

// smallPages are pages as small as bbolt has them: the less stays empty behind
// the rows, the fewer bytes there are.
const smallPages = 1024

// TestEveryByteThatIsFlippedIsFound flips each byte of each page that a small
// bank's file uses, one at a time: all keys and values of all tables, the log, the
// heads and what holds them together. Each flip is found when the file is opened or
// audited. Flips in pages that bbolt calls free leave every answer as it was.
// It is one bit of each byte, and every 13th byte of the free pages; with
// RAMP_FLIPS=all each bit and all of them together, of a larger bank, and the free
// pages too; with -short a few.
func TestEveryByteThatIsFlippedIsFound(t *testing.T) {
	notUnderRace(t)
	t.Parallel()
	s := newSigner(t)
	path := filepath.Join(quickDir(t), "ledger.db")
	if err := smallBank(t, s, path).db.Close(); err != nil {
		t.Fatal(err)
	}
	masks, step, freeStep := []byte{0}, 1, 13
	switch {
	case everything():
		masks, freeStep = []byte{1, 2, 4, 8, 16, 32, 64, 128, 255}, 1
	case testing.Short():
		step, freeStep = 19, 97
	}
	whole := usedPart(t, path)
	used := pagesInUse(t, path, len(whole))
	f := flipper{t: t, path: path, s: s, whole: whole}
	if bad, want := examine(path, s); bad {
		t.Fatal("the file is not right to begin with")
	} else {
		f.want = want
	}
	for i := range whole {
		for _, mask := range masks {
			switch {
			case used[i/smallPages] && i%step == 0:
				f.mustFind(i, mask)
			case !used[i/smallPages] && i%freeStep == 0:
				f.mustCarryNothing(i, mask)
			}
		}
	}
	t.Logf("%d flips in pages in use, %d found; %d flips in free pages, %d without effect", f.used, f.found, f.free, f.nothing)
	if f.used == 0 || f.free == 0 {
		t.Error("nothing was tried")
	}
}

// notUnderRace skips a test that damages pages where the race detector looks on: bbolt
// follows a damaged number into memory that others write to, which is found out, but is
// a race.
func notUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("bbolt reads beside a damaged file, in memory of others")
	}
}

// quickDir is a directory for files that are written thousands of times: in memory,
// if there is such a place.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ramp-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// everything reports whether the long form was asked for.
func everything() bool { return os.Getenv("RAMP_FLIPS") == "all" }

// smallBank is a signedBank in small pages.
func smallBank(t *testing.T, s signer, path string) *diary {
	t.Helper()
	if err := ledgerdb.BeginWithPages(path, smallPages); err != nil {
		t.Fatal(err)
	}
	if everything() {
		return signedBank(t, s, path, 20)
	}
	return signedBank(t, s, path, 2)
}

// flipper flips bytes of a file and counts what came of it.
type flipper struct {
	t                          *testing.T
	path                       string
	s                          signer
	whole                      []byte
	want                       string // all answers of the sound file
	used, found, free, nothing int
}

// try flips the bits of mask in byte i; 0 is one bit, another for each byte.
func (f *flipper) try(i int, mask byte) (found bool, answers string) {
	if mask == 0 {
		mask = 1 << (i % 8)
	}
	b := slices.Clone(f.whole)
	b[i] ^= mask
	rewrite(f.t, f.path, b)
	found, answers = examine(f.path, f.s)
	if now, err := os.ReadFile(f.path); err != nil || !bytes.Equal(now, b) {
		f.t.Errorf("byte %d (page %d, at %d): the file was changed by looking at it (%v)", i, i/smallPages, i%smallPages, err)
	}
	return found, answers
}

func (f *flipper) mustFind(i int, mask byte) {
	f.used++
	if found, _ := f.try(i, mask); found {
		f.found++
		return
	}
	f.t.Errorf("byte %d (page %d, at %d), %02x, flipped by %02x: not found", i, i/smallPages, i%smallPages, f.whole[i], mask)
}

func (f *flipper) mustCarryNothing(i int, mask byte) {
	f.free++
	if found, answers := f.try(i, mask); found || answers == f.want {
		f.nothing++
		return
	}
	f.t.Errorf("byte %d (page %d, free): not found, and other answers", i, i/smallPages)
}

// pagesInUse are the pages of a file that bbolt does not call free.
func pagesInUse(t *testing.T, path string, size int) map[int]bool {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	used := map[int]bool{}
	err = b.View(func(tx *bbolt.Tx) error {
		for id := 0; id < size/smallPages; {
			p, err := tx.Page(id)
			if err != nil || p == nil {
				return err
			}
			more := p.OverflowCount
			if p.Type == "free" { // what stands in it is of no more account
				more = 0
			}
			for range 1 + more {
				used[id] = p.Type != "free"
				id++
			}
		}
		return nil
	})
	if err != nil || !used[0] || !used[1] {
		t.Fatal(err, used)
	}
	return used
}

// usedPart shrinks a closed ledger file to the pages that it uses, and is them.
func usedPart(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimRight(b, "\x00")
	b = append(b, make([]byte, 8192-len(b)%4096)...) // trailing pages may end with zeros
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

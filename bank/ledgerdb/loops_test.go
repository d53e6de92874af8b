package ledgerdb_test

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/bank/ledgerdb"
)

// TestABranchThatLeadsBackIsFoundBeforeAnybodyFollowsIt makes each branch of a
// bank's file lead to itself and to each other branch. Followed, such a branch
// would take all memory there is.
func TestABranchThatLeadsBackIsFoundBeforeAnybodyFollowsIt(t *testing.T) {
	s := newSigner(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := ledgerdb.BeginWithPages(path, smallPages); err != nil {
		t.Fatal(err)
	}
	if err := signedBank(t, s, path, 40).db.Close(); err != nil {
		t.Fatal(err)
	}
	whole := usedPart(t, path)
	used := pagesInUse(t, path, len(whole))
	var branches []uint64
	for id := range len(whole) / smallPages {
		if used[id] && binary.LittleEndian.Uint16(page(whole, id)[8:]) == 1 {
			branches = append(branches, uint64(id))
		}
	}
	tried := 0
	for _, id := range branches {
		for child := range binary.LittleEndian.Uint16(page(whole, int(id))[10:]) {
			for _, to := range branches {
				b := slices.Clone(whole)
				binary.LittleEndian.PutUint64(page(b, int(id))[16+16*int(child)+8:], to)
				if slices.Equal(b, whole) {
					continue
				}
				tried++
				rewrite(t, path, b)
				db, err := ledgerdb.Open(path)
				if err == nil {
					_ = db.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "damaged") {
					t.Errorf("child %d of page %d is page %d: opened with %v", child, id, to, err)
				}
			}
		}
	}
	if t.Logf("%d branches, %d ways", len(branches), tried); tried < 10 {
		t.Error("too few were tried")
	}
}

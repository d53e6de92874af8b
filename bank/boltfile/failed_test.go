package boltfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ramp/agents/storetest"
	"ramp/bank/boltfile"
)

// A file under which the disk has failed is suspect until it was audited, also if there was
// no room for the mark beside it, and however often it is opened before.
func TestAFileWithoutRoomForItsMarkIsSuspect(t *testing.T) {
	storetest.OnFaultyDisk(t, func(t *testing.T, d *storetest.FaultyDisk) {
		for _, room := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "a.db")
			if !room {
				check(t, os.Symlink("/nonexistent/mark", path+".failed")) // nobody can begin it, not even root
			}
			f := opened(t, path, false)
			d.Fail(1, syscall.EIO)
			uncertain, err := f.Write(func(tx *boltfile.Tx) error {
				_, err := tx.Table("a", "b", 0)
				return err
			})
			d.Fail(0, 0)
			if err == nil || !uncertain {
				t.Fatalf("room %t: a failed write is %v, uncertain %t", room, err, uncertain)
			}
			check(t, f.Close())
			check(t, opened(t, path, true).Close())
			f = opened(t, path, true)
			check(t, f.Audited())
			check(t, f.Close())
			check(t, opened(t, path, false).Close())
		}
	})
}

// opened opens a file that is suspect, or is not.
func opened(t *testing.T, path string, suspect bool) *boltfile.File {
	t.Helper()
	f, err := plain.Open(path)
	check(t, err)
	if f.Suspect() != suspect {
		t.Fatalf("suspect: %t, want %t", f.Suspect(), suspect)
	}
	return f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

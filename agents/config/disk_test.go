package config

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatADiskLacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stat unix.Statfs_t
		want string
	}{
		"much is free":           {unix.Statfs_t{Blocks: 1 << 20, Bavail: 1 << 19, Bsize: 4096, Files: 9, Ffree: 1}, ""},
		"some is free":           {unix.Statfs_t{Blocks: 1 << 20, Bavail: leastFree / 4096, Bsize: 4096}, ""},
		"little is free":         {unix.Statfs_t{Blocks: 1 << 20, Bavail: leastFree/4096 - 1, Bsize: 4096}, "63 MB free on the disk of d"},
		"nothing for this user":  {unix.Statfs_t{Blocks: 1 << 20, Bfree: 1 << 19, Bsize: 4096}, "0 MB free on the disk of d"},
		"no file":                {unix.Statfs_t{Blocks: 1 << 20, Bavail: 1 << 19, Bsize: 4096, Files: 9}, "no more files can be created on the disk of d"},
		"files are not counted":  {unix.Statfs_t{Blocks: 1 << 20, Bavail: 1 << 19, Bsize: 4096}, ""},
		"blocks are not counted": {unix.Statfs_t{Files: 9, Ffree: 9}, ""},
	} {
		if got := spaceOf("d", c.stat).Full(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if r, err := SpaceAt(filepath.Join(t.TempDir(), "to", "come")); err != nil || r.Free <= 0 {
		t.Errorf("a directory that will be made has %d bytes (%v), want those of where it will be", r.Free, err)
	}
}

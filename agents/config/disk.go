package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leastFree  = 64 << 20         // bytes; with less an agent soon cannot write
	DiskPeriod = 10 * time.Second // between two checks of a site's disks
	DiskHelp   = "free some space: an agent that cannot write refuses everything until it can"
)

// DiskSpace is the free space on the disk of a directory.
type DiskSpace struct {
	dir     string
	Free    int64 // bytes; math.MaxInt64 if the file system does not say
	noFiles bool  // no further file can be created
}

// SpaceAt is the free space for a directory, which need not exist yet.
func SpaceAt(dir string) (DiskSpace, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	for at := dir; errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		err = unix.Statfs(at, &s)
	}
	return spaceOf(dir, s), err
}

// spaceOf converts the counts of a file system. Some file systems leave them zero.
func spaceOf(dir string, s unix.Statfs_t) DiskSpace {
	r := DiskSpace{dir: dir, Free: math.MaxInt64, noFiles: s.Files > 0 && s.Ffree == 0}
	if s.Blocks > 0 {
		r.Free = int64(s.Bavail) * cmp.Or(s.Frsize, s.Bsize)
	}
	return r
}

// Full says in one line how a disk is full; "" if it is not.
func (r DiskSpace) Full() string {
	switch {
	case r.noFiles:
		return "no more files can be created on the disk of " + r.dir
	case r.Free < leastFree:
		return fmt.Sprintf("%d MB free on the disk of %s", r.Free>>20, r.dir)
	}
	return ""
}

// Places lists the directories that an agent writes.
func (c *Config) Places() []string {
	dirs := []string{c.Dir, filepath.Dir(c.DataFile())}
	if c.Resource != nil {
		if root, err := c.jobsRoot(); err == nil && c.Resource.Jobs != nil {
			dirs = append(dirs, root)
		}
	}
	return dirs
}

// FullDisk says which disk of an agent is full; "" if none is.
func (c *Config) FullDisk() string {
	for _, dir := range c.Places() {
		if r, err := SpaceAt(dir); err == nil && r.Full() != "" {
			return r.Full()
		}
	}
	return ""
}

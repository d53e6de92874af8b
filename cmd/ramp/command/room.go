package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/protocol"
)

const (
	diskEmpty  = 64 << 20         // bytes free, below which an agent soon cannot write
	roomPeriod = 10 * time.Second // between two looks of a site at its disks
	roomHelp   = "make room: an agent that cannot write refuses everything until it can"
)

// room is what is left of a disk.
type room struct {
	dir    string // that was asked about
	free   int64  // bytes; the most if that is not known
	noFile bool   // no further file can be made
}

// roomAt is how much room there is in a directory, or where it will be made.
func roomAt(dir string) (room, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	for at := dir; errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		err = unix.Statfs(at, &s)
	}
	return roomOf(dir, s), err
}

// roomOf reads what a file system tells. Some count nothing: then nothing is known.
func roomOf(dir string, s unix.Statfs_t) room {
	r := room{dir: dir, free: math.MaxInt64, noFile: s.Files > 0 && s.Ffree == 0}
	if s.Blocks > 0 {
		r.free = int64(s.Bavail) * cmp.Or(s.Frsize, s.Bsize)
	}
	return r
}

// lacks says in one line what is missing; "" if nothing is.
func (r room) lacks() string {
	switch {
	case r.noFile:
		return "no file more can be made on the disk of " + r.dir
	case r.free < diskEmpty:
		return fmt.Sprintf("%d MB free on the disk of %s", r.free>>20, r.dir)
	}
	return ""
}

// places are the directories that an agent writes.
func (c *config) places() []string {
	dirs := []string{c.dir, filepath.Dir(c.dataFile())}
	if c.Resource != nil {
		if root, err := c.jobsRoot(); err == nil && c.Resource.Jobs != nil {
			dirs = append(dirs, root)
		}
	}
	return dirs
}

// lacksRoom says on which disk of an agent there is no room; "" if there is some.
func (c *config) lacksRoom() string {
	for _, dir := range c.places() {
		if r, err := roomAt(dir); err == nil && r.lacks() != "" {
			return r.lacks()
		}
	}
	return ""
}

// watchRoom pauses the sales while there is no room for what would be sold.
func (r *resourceNode) watchRoom(ctx context.Context) {
	again := time.NewTicker(roomPeriod)
	defer again.Stop()
	for {
		why := r.cfg.lacksRoom()
		_ = r.runner.Do(ctx, func(now time.Time, role agents.Role) protocol.Output { // it stops, or refuses anyway
			role.(*resource.Role).Hinder(now, why)
			return protocol.Output{}
		})
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

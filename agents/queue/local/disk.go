package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ramp/protocol/message"
)

// Bounds of a measurement of a job's files. A job beyond them is killed: its use cannot
// be measured.
const (
	maxFiles = 1 << 20
	maxDepth = 300 // directories inside each other: each is an open file
	// diskShare: measuring takes at most one part in diskShare of the time.
	diskShare = 10
)

// disk is the space that a job's files take.
type disk struct {
	bytes int64
	files int
	seen  map[uint64]bool // files with several names, and files without any
}

// diskSize is the result of a measurement, and when the next is due.
type diskSize struct {
	bytes int64
	err   error
	next  time.Time
}

// watchDisk begins to measure the job's files, if it is time.
func (k *keeper) watchDisk(now time.Time) {
	if k.job.FileSize <= 0 || k.diskAt.IsZero() || now.Before(k.diskAt) {
		return
	}
	k.diskAt = time.Time{}
	go func() {
		n, err := k.diskUse()
		k.measured <- diskSize{n, err, now.Add(diskShare * time.Since(now))}
	}()
}

// judge kills the job if its files take more than they may.
func (k *keeper) judge(d diskSize) {
	k.diskAt = d.next
	switch {
	case d.err != nil:
		k.fail("its disk usage cannot be measured: " + d.err.Error())
	case d.bytes > k.diskMost:
		k.fail(fmt.Sprintf("it wrote more than %d bytes to the disk, the most that this site allows", k.job.FileSize))
	}
}

// watchMemory kills the job if its processes have more memory than they may, where no
// control group bounds it.
func (k *keeper) watchMemory() {
	if most := memoryOf(k.job); !k.plan.Cgroup && most > 0 && k.meter.memory > most {
		k.fail(fmt.Sprintf("its processes took more than %d bytes of memory, the most that this site allows", most))
	}
}

func (k *keeper) fail(why string) {
	k.status.Note = cmp.Or(k.status.Note, "killed: "+why)
	signalAll(k.job.Dir, unix.SIGKILL, 0)
}

// memoryOf is the most memory of a job: as configured, or its share of the machine's.
func memoryOf(job message.Job) int64 {
	if job.Memory > 0 {
		return job.Memory
	}
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit) / int64(runtime.NumCPU()) * int64(max(job.Slot.Cores, 1))
}

// diskUse measures the job's files, what it has printed, the files that it has deleted and
// still has open or mapped, and its files in memory.
func (k *keeper) diskUse() (int64, error) {
	d := disk{seen: map[uint64]bool{}}
	var st unix.Stat_t
	for _, name := range []string{"stdout", "stderr"} {
		if unix.Lstat(filepath.Join(k.job.Dir, name), &st) == nil {
			d.add(st)
		}
	}
	for _, name := range []string{workDir, tmpDir} {
		fd, err := unix.Open(filepath.Join(k.job.Dir, name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			err = d.walk(fd, 0)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) { // a job that is not contained may remove them
			return 0, err
		}
	}
	if err := unix.Stat(k.job.Dir, &st); err != nil {
		return 0, err
	}
	for _, pid := range members(k.job.Dir) {
		err := d.deleted(fmt.Sprintf("/proc/%d/fd", pid), 0)
		if err == nil {
			err = d.deleted(fmt.Sprintf("/proc/%d/map_files", pid), st.Dev) // others are memory
		}
		if err != nil {
			return 0, err
		}
	}
	return d.bytes, nil
}

// deleted measures the files without a name to which the links in a directory of /proc lead:
// all, or those of a device.
func (d *disk) deleted(of string, device uint64) error {
	dir, err := os.Open(of)
	if err != nil {
		return nil //nolint:nilerr // the process is gone
	}
	defer dir.Close() //nolint:errcheck // only read
	for {
		names, err := dir.Readdirnames(1 << 10)
		if err != nil { // the end, or the process has ended
			return nil //nolint:nilerr // as it says
		}
		for _, name := range names {
			var st unix.Stat_t
			switch d.files++; {
			case d.files > maxFiles:
				return fmt.Errorf("more than %d files, open ones included", maxFiles)
			case unix.Fstatat(int(dir.Fd()), name, &st, 0) == nil && st.Nlink == 0 && (device == 0 || st.Dev == device):
				d.add(st)
			}
		}
	}
}

// walk measures what is below an open directory, and closes it. It follows no links, and
// files may come and go meanwhile.
func (d *disk) walk(fd, depth int) error {
	dir := os.NewFile(uintptr(fd), "directory")
	defer dir.Close() //nolint:errcheck // only read
	for {
		names, err := dir.Readdirnames(1 << 10)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := d.visit(fd, name, depth); err != nil {
				return err
			}
		}
	}
}

func (d *disk) visit(in int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // it is gone
	}
	d.add(st)
	switch {
	case d.files > maxFiles:
		return fmt.Errorf("more than %d files", maxFiles)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return nil
	case depth >= maxDepth:
		return fmt.Errorf("more than %d nested directories", maxDepth)
	}
	fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EACCES):
		return err
	case err != nil:
		return nil // it is gone, or something else
	}
	return d.walk(fd, depth+1)
}

// add adds a file; one with several names counts once.
func (d *disk) add(st unix.Stat_t) {
	d.files++
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink != 1 {
		if d.seen[st.Ino] {
			return
		}
		d.seen[st.Ino] = true
	}
	d.bytes += st.Blocks * 512
}

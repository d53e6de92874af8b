package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// InUseError names the process that has a file open.
type InUseError struct {
	Name    string // of the form
	Path    string
	PID     int    // zero: unknown
	Command string // of the process
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s %s is in use by another process", e.Name, e.Path)
	}
	return fmt.Sprintf("%s %s is in use by pid %d (%s)", e.Name, e.Path, e.PID, e.Command)
}

// LockEnd is the suffix of the name of a file's lock.
const LockEnd = ".lock"

// maxHolder bounds the content of a lock file.
const maxHolder = 256

// lockFailed begins the lock of a file under which the disk has failed, if nothing else
// can be written.
const lockFailed = "failed "

// takeLock locks the file beside a file, and writes the process into it. The system frees
// the lock when the process ends, however it ends.
func (f *Form) takeLock(path string) (_ *os.File, suspect bool, _ error) {
	lock, err := os.OpenFile(path+LockEnd, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", f.Name, err)
	}
	if err := f.acquire(lock, path); err != nil {
		_ = lock.Close() // nothing was written
		return nil, false, err
	}
	mark := make([]byte, len(lockFailed))
	if _, _ = lock.ReadAt(mark, 0); string(mark) == lockFailed {
		return lock, true, nil
	}
	nameHolder(lock)
	return lock, false, nil
}

// nameHolder writes the process into its lock: a courtesy, and missing on a full disk.
func nameHolder(lock *os.File) {
	who := fmt.Sprintf("%d %s", os.Getpid(), strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "))
	_ = lock.Truncate(0)
	_, _ = lock.WriteAt([]byte(who[:min(len(who), maxHolder)]), 0)
}

// Tries for a lock that is about to be free, at least lockPause apart.
const (
	orphanTries   = 1000 // its process dies, or died and left it to one that it was starting
	namelessTries = 200  // its process takes it, gives it back, or checks whether it is free
	lockPause     = 10 * time.Millisecond
)

// acquire locks the file, and retries while its holder may be about to free it.
func (f *Form) acquire(lock *os.File, path string) error {
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for tries := 1; ; tries++ {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock %s %s: %w", f.Name, path, err)
		}
		who := holder(lock, f.Name, path)
		if tries > who.retries() {
			return who
		}
		<-again.C
	}
}

// retries is how often to retry while this process has the file.
func (e *InUseError) retries() int {
	switch {
	case e.PID == 0:
		return namelessTries
	case errors.Is(syscall.Kill(e.PID, 0), syscall.ESRCH), dying(e.PID):
		return orphanTries
	}
	return 0
}

// Fields of /proc/PID/stat behind the process's name, and their bits of a dying process.
const (
	statState, statFlags, statPending = 0, 6, 28

	flagExiting = 0x4                             // PF_EXITING
	killPending = 1 << (int(syscall.SIGKILL) - 1) // SIGKILL was sent
)

// dying reports whether a process is ending, and keeps its files only until it has ended.
// Without /proc the answer is false.
func dying(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // a name may have spaces
	if len(fields) <= statPending {
		return false
	}
	has := func(field, bit int) bool {
		n, err := strconv.Atoi(fields[field])
		return err == nil && n&bit != 0
	}
	return strings.Contains("ZX", fields[statState]) || has(statFlags, flagExiting) || has(statPending, killPending)
}

func holder(lock *os.File, name, path string) *InUseError {
	b, _ := io.ReadAll(io.NewSectionReader(lock, 0, maxHolder))
	number, command, _ := strings.Cut(string(b), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid < 1 {
		pid = 0
	}
	return &InUseError{Name: name, Path: path, PID: pid, Command: command}
}

// Holder is the process that has the file at path open, or nil.
func Holder(path string) (*InUseError, error) {
	lock, err := os.Open(path + LockEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close() // and with it the lock
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return nil, nil // a name in it belongs to a process that has ended
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return nil, fmt.Errorf("lock of %s: %w", path, err)
	}
	return holder(lock, "file", path), nil
}

// freeLock does not remove the file: two processes could then lock two files of the same
// name. Closing is not enough: a process that is just being started here shares the file
// until it executes its program.
func freeLock(f *os.File, suspect bool) {
	if !suspect {
		_ = f.Truncate(0)
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

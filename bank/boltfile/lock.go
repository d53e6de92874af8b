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

// InUseError says who has a file open.
type InUseError struct {
	Name    string // of the form
	Path    string
	PID     int    // zero: not known
	Command string // of the process
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s %s is in use by another process", e.Name, e.Path)
	}
	return fmt.Sprintf("%s %s is in use by pid %d (%s)", e.Name, e.Path, e.PID, e.Command)
}

// LockEnd is what the name of a file's lock has behind the file's.
const LockEnd = ".lock"

// maxHolder bounds what is written into and read from a lock file.
const maxHolder = 256

// takeLock locks the file beside one and writes into it who did. The
// system frees the lock when the process ends, however it ends.
func (f *Form) takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+LockEnd, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Name, err)
	}
	if err := f.hold(lock, path); err != nil {
		_ = lock.Close() // nothing was written
		return nil, err
	}
	// Who holds the lock is told as a courtesy; on a full disk it is not known.
	who := fmt.Sprintf("%d %s", os.Getpid(), strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "))
	_ = lock.Truncate(0)
	_, _ = lock.WriteAt([]byte(who[:min(len(who), maxHolder)]), 0)
	return lock, nil
}

// How often one looks, at least lockPause apart, for a lock that is about to be free.
const (
	orphanLooks   = 1000 // of a process that dies, or is dead and left it to one that it was starting
	namelessLooks = 200  // of one that takes it, gives it back, or looks whether anybody has it
	lockPause     = 10 * time.Millisecond
)

// hold locks the file, and waits for a holder only as long as it is patient with it.
func (f *Form) hold(lock *os.File, path string) error {
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for looks := 1; ; looks++ {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock %s %s: %w", f.Name, path, err)
		}
		who := f.holder(lock, path)
		if looks > who.patience() {
			return who
		}
		<-again.C
	}
}

// patience is for how many looks the one who has a file is waited for.
func (e *InUseError) patience() int {
	switch {
	case e.PID == 0:
		return namelessLooks
	case errors.Is(syscall.Kill(e.PID, 0), syscall.ESRCH), dying(e.PID):
		return orphanLooks
	}
	return 0
}

// Fields of /proc/PID/stat behind the process's name, and what in them says that it dies.
const (
	statState, statFlags, statPending = 0, 6, 28

	flagExiting = 0x4                             // PF_EXITING
	killPending = 1 << (int(syscall.SIGKILL) - 1) // its last signal has come
)

// dying reports whether a process is just being taken apart, and has its files until
// that is done; where there is no /proc nobody knows.
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

func (f *Form) holder(lock *os.File, path string) *InUseError {
	return holder(lock, f.Name, path)
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

// Holder says who has the file at path open; nil: nobody.
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
		return nil, nil // a name in it is of a process that has ended
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return nil, fmt.Errorf("lock of %s: %w", path, err)
	}
	return holder(lock, "file", path), nil
}

// freeLock leaves the file: to remove it would let two processes lock two
// files of the same name. To close it is not enough: a process that is just being
// started here has it too, until it has become another program.
func freeLock(f *os.File) {
	_ = f.Truncate(0)
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

package boltfile

import (
	"errors"
	"fmt"
	"io"
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

// maxHolder bounds what is written into and read from a lock file.
const maxHolder = 256

// takeLock locks the file beside one and writes into it who did. The
// system frees the lock when the process ends, however it ends.
func (f *Form) takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
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

// A process that was killed while it started another leaves its files to that one
// until it has become another program, which takes a moment on a busy machine.
const (
	orphanTime  = 10 * time.Second
	orphanPause = 10 * time.Millisecond
)

// hold waits only for a holder that is dead.
func (f *Form) hold(lock *os.File, path string) error {
	late, again := time.NewTimer(orphanTime), time.NewTicker(orphanPause)
	defer late.Stop()
	defer again.Stop()
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock %s %s: %w", f.Name, path, err)
		}
		who := f.holder(lock, path)
		if !who.dead() {
			return who
		}
		select {
		case <-late.C:
			return who
		case <-again.C:
		}
	}
}

// dead reports whether the process that wrote its name is no more.
func (e *InUseError) dead() bool {
	return e.PID > 0 && errors.Is(syscall.Kill(e.PID, 0), syscall.ESRCH)
}

func (f *Form) holder(lock *os.File, path string) *InUseError {
	b, _ := io.ReadAll(io.NewSectionReader(lock, 0, maxHolder))
	pid, command, _ := strings.Cut(string(b), " ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		n = 0
	}
	return &InUseError{Name: f.Name, Path: path, PID: n, Command: command}
}

// freeLock leaves the file: to remove it would let two processes lock two
// files of the same name. To close it is not enough: a process that is just being
// started here has it too, until it has become another program.
func freeLock(f *os.File) {
	_ = f.Truncate(0)
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

package ledgerdb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// InUseError says who has a ledger open.
type InUseError struct {
	Path    string
	PID     int    // zero: not known
	Command string // of the process
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("ledger %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("ledger %s is in use by pid %d (%s)", e.Path, e.PID, e.Command)
}

// maxHolder bounds what is written into and read from a lock file.
const maxHolder = 256

// takeLock locks the file beside the ledger and writes into it who did. The
// system frees the lock when the process ends, however it ends.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock ledger: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, holder(f, path)
		}
		return nil, fmt.Errorf("lock ledger %s: %w", path, err)
	}
	// Who holds the lock is told as a courtesy; on a full disk it is not known.
	who := fmt.Sprintf("%d %s", os.Getpid(), strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "))
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(who[:min(len(who), maxHolder)]), 0)
	return f, nil
}

func holder(f *os.File, path string) *InUseError {
	b, _ := io.ReadAll(io.LimitReader(f, maxHolder))
	pid, command, _ := strings.Cut(string(b), " ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		n = 0
	}
	return &InUseError{Path: path, PID: n, Command: command}
}

// freeLock leaves the file: to remove it would let two processes lock two
// files of the same name. To close it is not enough: a process that is just being
// started here has it too, until it has become another program.
func freeLock(f *os.File) {
	_ = f.Truncate(0)
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

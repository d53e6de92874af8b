package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// PendingName is the subdirectory of a user agent with notes of orders to buy that have no
// answer yet.
const PendingName = "pending"

// LockNote opens and locks a note; nil if another process has locked it.
func LockNote(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return nil, f.Close()
		}
		if current(f) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// current reports whether a file is still at its path. Another command may have finished with
// the note and removed it between our opening and locking it.
func current(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Name())
	return err == nil && os.SameFile(mine, there)
}

// CloseNote unlocks a note before closing it: a child that has forked but not yet called exec
// also has the file open, and would keep the lock.
func CloseNote(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

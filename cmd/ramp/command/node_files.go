package command

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ramp/agents/journal"
	"ramp/bank/boltfile"
)

func openJournal(dir string) (*journal.Journal, error) {
	j, err := patiently(func() (*journal.Journal, error) { return journal.Open(filepath.Join(dir, journalName), traceBytes) })
	if err != nil {
		return nil, journalError(err)
	}
	return j, nil
}

// How long a file that a command has open is waited for: most commands take less.
const (
	busyTime  = 3 * time.Second
	busyPause = 20 * time.Millisecond
)

// patiently opens a file for as long as a command has it; a daemon will not give it up.
func patiently[T any](open func() (T, error)) (T, error) {
	late := time.Now().Add(busyTime)
	again := time.NewTicker(busyPause)
	defer again.Stop()
	for {
		v, err := open()
		if !commandHas(err) || time.Now().After(late) {
			return v, err
		}
		<-again.C
	}
}

// commandHas reports whether a file could not be opened for a process that is no daemon.
func commandHas(err error) bool {
	var who *boltfile.InUseError
	return errors.As(err, &who) && who.PID != 0 && !strings.Contains(who.Command, " serve")
}

func journalError(err error) error {
	if inUse := (*boltfile.InUseError)(nil); errors.As(err, &inUse) {
		return fail(exitFailed, "wait until it is done, or end it; commands talk to a daemon that answers", "%w", err)
	}
	if errors.Is(err, boltfile.ErrNewer) {
		return fail(exitFailed, "use the version of the program that wrote it ('ramp version'), or restore a backup from before", "%w", err)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fail(exitFailed, "an agent must be able to write its directory: 'ramp doctor' looks closer", "%w", err)
	}
	return fail(exitFailed, "", "%w", err)
}

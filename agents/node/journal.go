package node

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/journal"
	"ramp/bank/boltfile"
)

func openJournal(dir string) (*journal.Journal, error) {
	j, err := waitingForCommands(func() (*journal.Journal, error) {
		return journal.Open(filepath.Join(dir, config.JournalName), TraceBytes)
	})
	if errors.Is(err, boltfile.ErrDamaged) {
		return nil, exit.Fail(exit.Failed, "move it and "+config.JournalName+".wal away but keep them, and restore a copy; a site can start without one, see 'A lost journal' in docs/OPERATIONS.md", "%w", err)
	}
	return j, JournalError(err)
}

// waitingForCommands opens a file, waiting while a command has it open. It does not wait for
// a daemon.
func waitingForCommands[T any](open func() (T, error)) (T, error) {
	late := time.Now().Add(control.BusyTime)
	for {
		v, err := open()
		if !CommandHas(err) || time.Now().After(late) {
			return v, err
		}
		<-time.After(control.BusyPause)
	}
}

// CommandHas reports whether a file cannot be opened because a command has it open.
func CommandHas(err error) bool {
	var who *boltfile.InUseError
	return errors.As(err, &who) && who.PID != 0 && !strings.Contains(who.Command, " serve")
}

// JournalError adds a hint to the error of opening a journal or ledger.
func JournalError(err error) error {
	hint, inUse := "", (*boltfile.InUseError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &inUse):
		hint = "wait until it is done, or end it; commands talk to a daemon that answers"
	case errors.Is(err, boltfile.ErrNewer):
		hint = "use the version of the program that wrote it ('ramp version'), or restore a backup from before"
	case errors.Is(err, boltfile.ErrNoLog):
		hint = "bring it back; if it is lost, move the ledger away and restore that file, or a later backup ('ramp bank restore')"
	case errors.Is(err, boltfile.ErrDamaged):
		hint = "move it and its .wal away but keep them, and restore a backup: 'ramp bank restore FILE'"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		hint = "an agent must be able to write its directory; 'ramp doctor' checks that"
	}
	return exit.Fail(exit.Failed, hint, "%w", err)
}

func (n *Node) openJournal() error {
	j, err := openJournal(n.Cfg.Dir)
	if err != nil {
		return err
	}
	n.journal, n.store, n.history = j, j, n.lookUp
	return nil
}

type store interface {
	agents.Store
	io.Closer
}

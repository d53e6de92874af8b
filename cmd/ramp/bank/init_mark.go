package bank

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/cmd/ramp/cli"
)

// The mark of a directory in which init has begun; it becomes config.FoundedName. It holds what
// was asked for, so that the same command is recognised. The lock belongs to the running command.
const (
	unfinishedName = "init.unfinished"
	foundingName   = "init.lock"
)

// asked describes what was asked for in one line.
func (f founding) asked() string {
	s := fmt.Sprintf("currencies %v, policy %s, decay %s, name %s, authority %q, listen %v, enrol %t",
		f.currencies, f.policy, f.decay, f.name, f.ca, f.listen, f.enrol)
	if f.store != "" {
		s += fmt.Sprintf(", store %q, etcd %+v", f.store, f.etcd)
	}
	return s + "\n"
}

// finished reports whether the same command has finished here before.
func (f founding) finished() bool {
	b, err := os.ReadFile(filepath.Join(f.dir, config.FoundedName))
	return err == nil && strings.TrimSuffix(string(b), foundsLedger) == f.asked()
}

// alone makes the directory, and locks out other commands that would make a bank in it until leave
// is called.
func (f founding) alone() (leave func(), err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, exit.Fail(exit.Usage, "choose another directory with --dir", "%w", err)
	}
	lock, err := cli.LockNote(filepath.Join(f.dir, foundingName))
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, exit.Fail(exit.Failed, "repeat the command when the other one has ended", "another command is making a bank in %s", f.dir)
	}
	return func() {
		_ = os.Remove(lock.Name()) // a file that remains is just locked again
		cli.CloseNote(lock)
	}, nil
}

// begin rejects a directory that has a bank, unless an init there is unfinished.
func (f founding) begin() error {
	mark := filepath.Join(f.dir, unfinishedName)
	for _, name := range []string{config.Name, config.LedgerName} {
		if path := filepath.Join(f.dir, name); config.IsThere(path) && !config.IsThere(mark) {
			return exit.Fail(exit.Usage, "choose another directory with --dir", "%s exists already", path)
		}
	}
	if b, err := os.ReadFile(mark); err == nil {
		if strings.TrimSuffix(string(b), foundsLedger) != f.asked() {
			return exit.Fail(exit.Usage, "repeat that command, or choose another directory with --dir", "an unfinished init in %s was begun with %s", f.dir, strings.TrimSpace(string(b)))
		}
		return nil
	}
	return join.PutFile(mark, []byte(f.asked()), 0o600)
}

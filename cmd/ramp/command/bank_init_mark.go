package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What marks a directory in which init has begun and not ended, and one in which it
// has ended, in what was asked for, so that the same command can be told.
const (
	unfinishedName = "init.unfinished"
	finishedName   = "init.finished"
	foundingName   = "init.lock" // of the command that makes it
)

// asked is what was asked for, in one line.
func (f founding) asked() string {
	s := fmt.Sprintf("currencies %v, policy %s, decay %s, name %s, authority %q, listen %v, enrol %t",
		f.currencies, f.policy, f.decay, f.name, f.ca, f.listen, f.enrol)
	if f.store != "" {
		s += fmt.Sprintf(", store %q, etcd %+v", f.store, f.etcd)
	}
	return s + "\n"
}

// finished reports whether the same command has come to its end here before.
func (f founding) finished() bool {
	b, err := os.ReadFile(filepath.Join(f.dir, finishedName))
	return err == nil && strings.TrimSuffix(string(b), foundsLedger) == f.asked()
}

// alone makes the directory, and keeps other commands that make a bank out of it until
// leave is called.
func (f founding) alone() (leave func(), err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fail(exitUsage, "choose another directory with --dir", "%w", err)
	}
	lock, err := lockNote(filepath.Join(f.dir, foundingName))
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, fail(exitFailed, "the same command tells what was made once that one has ended", "another command is making a bank in %s", f.dir)
	}
	return func() {
		_ = os.Remove(lock.Name()) // one too many is locked again
		closeNote(lock)
	}, nil
}

// begin refuses a directory that has a bank, unless init has not ended there.
func (f founding) begin() error {
	mark := filepath.Join(f.dir, unfinishedName)
	for _, name := range []string{configName, ledgerName} {
		if path := filepath.Join(f.dir, name); isThere(path) && !isThere(mark) {
			return fail(exitUsage, "choose another directory with --dir", "%s is there already", path)
		}
	}
	if b, err := os.ReadFile(mark); err == nil {
		if strings.TrimSuffix(string(b), foundsLedger) != f.asked() {
			return fail(exitUsage, "give the same command again, or choose another directory with --dir", "init has begun in %s with %s", f.dir, strings.TrimSpace(string(b)))
		}
		return nil
	}
	return putFile(mark, []byte(f.asked()), 0o600)
}

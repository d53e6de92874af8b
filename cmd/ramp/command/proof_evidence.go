package command

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ramp/bank/audit"
	"ramp/protocol/contract"
)

// maxEvidence is how many pairs of heads are kept of one kind of alarm and one bank.
// Those that come behind are not kept, and it is said: the first ones convict.
const maxEvidence = 64

// contradiction is a head that a bank must not show after another: both, as the
// bank signed them.
type contradiction struct {
	err         error
	seen, shown audit.Seen
}

func (c *contradiction) Error() string { return c.err.Error() }
func (c *contradiction) Unwrap() error { return c.err }

// kind is what the names of an alarm's files of one bank begin with.
func (c *contradiction) kind() string {
	return alarmName(c.err) + "-" + c.seen.Bank.Fingerprint() + "-"
}

// name tells alarms apart: by the kind, the bank, and the sizes and roots of both heads.
// The same heads signed again, later, are the same alarm.
func (c *contradiction) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s", c.seen.Size, c.seen.Root, c.shown.Size, c.shown.Root))
	return fmt.Sprintf("%s%x", c.kind(), sum[:6])
}

// judged gives what a memory says of a head its exit code and hint. Heads that
// contradict each other are kept.
func (f headFile) judged(h contract.VerifiedHead, err error) error {
	last, ok := f.memory.Last(h.Bank)
	switch {
	case errors.Is(err, audit.ErrUnknown):
		return fail(exitFailed, "ask the bank for a fresh proof: 'ramp user receipt ID --out DIR --proof'", "%w", err)
	case !ok:
		return fail(exitFailed, "", "%w", err)
	}
	c := &contradiction{err, last, audit.Seen{Head: h.Head, ID: h.ID, DER: h.DER}}
	var fork *audit.Fork
	if errors.As(err, &fork) {
		c.seen, c.shown = fork.Seen, fork.Shown
	}
	return fail(exitFailed, f.keep(c)+"; if you know from its operator that it was restored from a backup: 'ramp bank witness BANK --accept-restore'", "%w", c)
}

// aside is a file beside that of the heads that were seen.
func (f headFile) aside(name string) string { return f.path + "-" + name }

// keep writes both heads beside the file of those that were seen, and says where.
// Each alarm has two files of its own, and none is written over.
func (f headFile) keep(c *contradiction) string {
	seen, shown := f.aside(c.name()+"-seen.p7m"), f.aside(c.name()+"-shown.p7m")
	there := isThere(seen) && isThere(shown)
	if n := f.count(c.kind()); !there && n >= maxEvidence {
		return fmt.Sprintf("%d pairs of heads that contradict each other are kept in %s*, which is the most: move them away to keep the next", n, f.aside(c.kind()))
	}
	if !there {
		if err := errors.Join(replaceFile(seen, c.seen.DER, 0o600), replaceFile(shown, c.shown.DER, 0o600)); err != nil {
			return fmt.Sprintf("the two heads, which the bank signed and which are evidence, cannot be kept: %s", err)
		}
	}
	return fmt.Sprintf("keep %s and %s: the bank signed both, and 'openssl cms -verify' reads them", seen, shown)
}

// count is how many pairs of a kind are kept; those that cannot be counted are none.
func (f headFile) count(kind string) int {
	files, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range files {
		if strings.HasPrefix(e.Name(), filepath.Base(f.path)+"-"+kind) && strings.HasSuffix(e.Name(), "-shown.p7m") {
			n++
		}
	}
	return n
}

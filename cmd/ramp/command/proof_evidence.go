package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ramp/bank/audit"
	"ramp/protocol/contract"
)

// contradiction is a head that a bank must not show after another: both, as the
// bank signed them.
type contradiction struct {
	err         error
	seen, shown []byte
}

func (c *contradiction) Error() string { return c.err.Error() }
func (c *contradiction) Unwrap() error { return c.err }

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
	c := &contradiction{err, last.DER, h.DER}
	var fork *audit.Fork
	if errors.As(err, &fork) {
		c.seen, c.shown = fork.Seen.DER, fork.Shown.DER
	}
	return fail(exitFailed, f.keep(c), "%w", c)
}

// keep writes both heads beside the file of those that were seen, and says where.
// The first two that were written stay.
func (f headFile) keep(c *contradiction) string {
	seen, shown := f.path+"-seen.p7m", f.path+"-shown.p7m"
	hint := fmt.Sprintf("keep %s and %s: the bank signed both, and 'openssl cms -verify' reads them", seen, shown)
	if isThere(seen) && isThere(shown) {
		return hint
	}
	for path, head := range map[string][]byte{seen: c.seen, shown: c.shown} {
		if err := os.WriteFile(path, head, fs.FileMode(0o600)); err != nil {
			return fmt.Sprintf("the two heads, which the bank signed and which are evidence, cannot be kept: %s", err)
		}
	}
	return hint
}

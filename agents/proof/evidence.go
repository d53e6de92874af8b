package proof

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/audit"
	"ramp/protocol/contract"
)

// maxEvidence bounds the pairs of heads kept per kind of alarm and bank. The first ones
// convict the bank; keep reports that it drops further ones.
const maxEvidence = 64

// Contradiction is a pair of heads that the bank signed and that contradict each other.
type Contradiction struct {
	err         error
	Seen, Shown audit.Seen
}

func (c *Contradiction) Error() string { return c.err.Error() }

func (c *Contradiction) Unwrap() error { return c.err }

// kind begins the names of the files of one kind of alarm and one bank.
func (c *Contradiction) kind() string {
	return AlarmFile(c.err) + "-" + c.Seen.Bank.Fingerprint() + "-"
}

// Name identifies an alarm by its kind, the bank, and the sizes and roots of both heads. The
// same heads signed again later make the same alarm.
func (c *Contradiction) Name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s", c.Seen.Size, c.Seen.Root, c.Shown.Size, c.Shown.Root))
	return fmt.Sprintf("%s%x", c.kind(), sum[:6])
}

// judged adds an exit code and a hint to the verdict on a head, and keeps heads that
// contradict each other.
func (f HeadFile) judged(h contract.VerifiedHead, err error) error {
	last, ok := f.Memory.Last(h.Bank)
	switch {
	case errors.Is(err, audit.ErrUnknown):
		return exit.Fail(exit.Failed, "ask the bank for a fresh proof: 'ramp user receipt ID --out DIR --proof'", "%w", err)
	case !ok:
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	c := &Contradiction{err, last, audit.Seen{Head: h.Head, ID: h.ID, DER: h.DER}}
	var fork *audit.Fork
	if errors.As(err, &fork) {
		c.Seen, c.Shown = fork.Seen, fork.Shown
	}
	return exit.Fail(exit.Failed, f.keep(c)+"; if you know from its operator that it was restored from a backup: 'ramp bank witness BANK --accept-restore'", "%w", c)
}

// Aside is the path of a file beside the one of the heads.
func (f HeadFile) Aside(name string) string { return f.Path + "-" + name }

// keep writes both heads beside the file of heads and says where. Each alarm has its own
// two files, which are never overwritten.
func (f HeadFile) keep(c *Contradiction) string {
	seen, shown := f.Aside(c.Name()+"-seen.p7m"), f.Aside(c.Name()+"-shown.p7m")
	there := config.IsThere(seen) && config.IsThere(shown)
	if n := f.count(c.kind()); !there && n >= maxEvidence {
		return fmt.Sprintf("%d pairs of heads that contradict each other are kept in %s*, which is the most: move them away to keep the next", n, f.Aside(c.kind()))
	}
	if !there {
		if err := errors.Join(config.ReplaceFile(seen, c.Seen.DER, 0o600), config.ReplaceFile(shown, c.Shown.DER, 0o600)); err != nil {
			return fmt.Sprintf("cannot keep the two heads, which are evidence since the bank signed them: %s", err)
		}
	}
	return fmt.Sprintf("keep %s and %s: the bank signed both, and 'openssl cms -verify' reads them", seen, shown)
}

// count counts the pairs kept of a kind; 0 if the directory cannot be read.
func (f HeadFile) count(kind string) int {
	files, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range files {
		if strings.HasPrefix(e.Name(), filepath.Base(f.Path)+"-"+kind) && strings.HasSuffix(e.Name(), "-shown.p7m") {
			n++
		}
	}
	return n
}

// Files are the files of a purchase or sale, their names in order, and the commands that
// verify them. A missing receipt or proof has no file.
func Files(f control.SignedFiles) (files map[string][]byte, names, verify []string) {
	files, names = map[string][]byte{"ca.pem": f.Anchors}, []string{"ca.pem"}
	add := func(name string, file []byte, command string) {
		files[name], names, verify = file, append(names, name), append(verify, command)
	}
	for i, sale := range f.Sales {
		n := i + 1
		add(fmt.Sprintf("sale-%d.p7m", n), sale, fmt.Sprintf(
			"openssl cms -verify -inform DER -in sale-%[1]d.p7m -CAfile ca.pem -purpose any -out inner-%[1]d.p7 && "+
				"openssl cms -verify -inform DER -in inner-%[1]d.p7 -CAfile ca.pem -purpose any -out bundle-%[1]d.json", n))
	}
	if len(f.Receipt) > 0 {
		add("receipt.p7m", f.Receipt, "openssl cms -verify -inform DER -in receipt.p7m -CAfile ca.pem -purpose any -out receipt.json")
	}
	if len(f.Proof) > 0 {
		add(ReceiptFile, f.Proof, "ramp bank verify .")
	}
	return files, names, verify
}

// AlarmFile names the kind of an alarm in the names of its files.
func AlarmFile(err error) string {
	names := []struct {
		err  error
		name string
	}{{audit.ErrFork, "fork"}, {audit.ErrShrunk, "shrunk"}, {audit.ErrStale, "stale"}, {contract.ErrSignature, "forged"}}
	for _, n := range names {
		if errors.Is(err, n.err) {
			return n.name
		}
	}
	return "unproven"
}

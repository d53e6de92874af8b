package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

const (
	proofName = "proof.json"
	headsName = "heads.json"
)

// readBounded reads a file of at most n bytes.
func readBounded(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n+1))
	if err != nil {
		return nil, fail(exitFailed, "", "%w", err)
	}
	if int64(len(b)) > n {
		return nil, fail(exitUsage, "", "%s has more than %d bytes", path, n)
	}
	return b, nil
}

// headFile is the file of the heads that somebody remembers.
type headFile struct {
	path   string
	memory *audit.Memory
}

// openHeads reads the file; one that is not there is a memory of nothing. An
// empty path remembers nothing beyond the command.
func openHeads(path string) (headFile, error) {
	f := headFile{path, audit.NewMemory()}
	if path == "" {
		return f, nil
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return f, fail(exitUsage, "", "--heads %s: want a file in a directory that is there: %w", path, err)
		}
		return f, nil
	}
	b, err := readBounded(path, audit.MaxMemory)
	if err != nil {
		return f, err
	}
	if f.memory, err = audit.DecodeMemory(b); err != nil {
		return f, fail(exitFailed, "restore it from a copy: without it a fork cannot be noticed", "%s: %w", path, err)
	}
	return f, nil
}

// save writes the file, so that a reader sees the old or the new one whole.
func (f headFile) save() error {
	if f.path == "" {
		return nil
	}
	b, err := f.memory.Encode()
	if err != nil {
		return err
	}
	return replaceFile(f.path, append(b, '\n'), 0o600)
}

// seenSize is the size of the log that was seen last of a bank.
func (f headFile) seenSize(bank protocol.AgentID) uint64 {
	last, _ := f.memory.Last(bank)
	return last.Size
}

// takeProof verifies a document of a bank: the signature of its head, the place
// of each of its entries, and that the log only grew since what is remembered.
// The head is remembered then. newest: the bank gave it as the newest just now.
func (f headFile) takeProof(doc []byte, bank protocol.AgentID, trust *identity.Trust, newest bool) (audit.Document, contract.VerifiedHead, error) {
	d, h, err := openProof(doc, bank, trust)
	if err != nil {
		return d, h, err
	}
	judge := f.memory.Judge
	if newest {
		judge = f.memory.Newest
	}
	if err := judge(h, d.From, d.Growth); err != nil {
		return d, h, f.judged(h, err)
	}
	if err := f.save(); err != nil {
		return d, h, fmt.Errorf("%w: %w", errNotKept, err)
	}
	return d, h, nil
}

// openProof verifies what a document says by itself, without what was seen before.
func openProof(doc []byte, bank protocol.AgentID, trust *identity.Trust) (audit.Document, contract.VerifiedHead, error) {
	d, err := audit.Decode(doc)
	if err != nil {
		return d, contract.VerifiedHead{}, fail(exitUsage, "", "%w", err)
	}
	h, err := contract.OpenHead(d.Head, trust)
	if err != nil {
		return d, h, fail(exitFailed, "", "%w", err)
	}
	if h.Bank != bank {
		return d, h, fail(exitFailed, "", "the proof is of %s, not of %s", h.Bank, bank)
	}
	if err := d.VerifyEntries(h.Head); err != nil {
		return d, h, fail(exitFailed, "", "%w", err)
	}
	return d, h, nil
}

// errNotKept: a head holds, and could not be remembered. It is no fault of the bank.
var errNotKept = errors.New("the heads that were seen cannot be kept")

// besides is a file that was named, or else the one of a name beside another.
func besides(named, path, name string) string {
	if named != "" {
		return named
	}
	return filepath.Join(filepath.Dir(path), name)
}

// trustOf reads trust anchors and, if there is one, a revocation list.
func trustOf(anchors, list string) (*identity.Trust, error) {
	pem, err := readBounded(anchors, maxControlBody)
	if err != nil {
		return nil, err
	}
	var crl []byte
	if list != "" {
		if crl, err = readBounded(list, maxControlBody); err != nil {
			return nil, err
		}
	}
	trust, err := identity.NewTrust(pem, crl)
	if err != nil {
		return nil, fail(exitUsage, "", "%s: %w", anchors, err)
	}
	return trust, nil
}

// headLine is a head for people.
func headLine(h contract.Head) string {
	return fmt.Sprintf("%d entries, root %.16s…, signed %s", h.Size, h.Root, h.Time.Format("2006-01-02 15:04:05.000Z"))
}

// Package proof checks the proofs of a bank's log against the heads that this machine
// has seen, and keeps evidence of a bank that contradicts itself.
package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/receipts"
	"ramp/agents/words"
	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

const (
	ReceiptFile = "proof.json"
	HeadsFile   = "heads.json"
)

// HeadFile is a file of signed heads seen earlier.
type HeadFile struct {
	Path   string
	Memory *audit.Memory
}

// OpenHeads reads the file, which need not exist yet. With an empty path nothing outlives
// the command.
func OpenHeads(path string) (HeadFile, error) {
	f := HeadFile{path, audit.NewMemory()}
	if path == "" {
		return f, nil
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return f, exit.Fail(exit.Usage, "", "--heads %s: want a file in an existing directory: %w", path, err)
		}
		return f, nil
	}
	b, err := words.ReadBounded(nil, path, audit.MaxMemory)
	if err != nil {
		return f, err
	}
	if f.Memory, err = audit.DecodeMemory(b); err != nil {
		return f, exit.Fail(exit.Failed, "restore it from a copy: without it a fork cannot be noticed", "%s: %w", path, err)
	}
	return f, nil
}

// Save replaces the file.
func (f HeadFile) Save() error {
	if f.Path == "" {
		return nil
	}
	b, err := f.Memory.Encode()
	if err != nil {
		return err
	}
	return config.ReplaceFile(f.Path, append(b, '\n'), 0o600)
}

// SeenSize is the size of a bank's log when last seen.
func (f HeadFile) SeenSize(bank protocol.AgentID) uint64 {
	last, _ := f.Memory.Last(bank)
	return last.Size
}

// TakeProof verifies a document of a bank: the signature of its head, the place of each of
// its entries, and that the log has only grown since the last head seen. It then saves the
// head. newest: the bank just presented it as its newest.
func (f HeadFile) TakeProof(doc []byte, bank protocol.AgentID, trust *identity.Trust, newest bool) (audit.Document, contract.VerifiedHead, error) {
	d, h, err := OpenProof(doc, bank, trust)
	if err != nil {
		return d, h, err
	}
	judge := f.Memory.Judge
	if newest {
		judge = f.Memory.Newest
	}
	if err := judge(h, d.From, d.Growth); err != nil {
		return d, h, f.judged(h, err)
	}
	if err := f.Save(); err != nil {
		return d, h, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return d, h, nil
}

// OpenProof verifies a document by itself, without heads seen earlier.
func OpenProof(doc []byte, bank protocol.AgentID, trust *identity.Trust) (audit.Document, contract.VerifiedHead, error) {
	d, err := audit.Decode(doc)
	if err != nil {
		return d, contract.VerifiedHead{}, exit.Fail(exit.Usage, "", "%w", err)
	}
	h, err := receipts.Verify(d, bank, trust)
	if err != nil {
		return d, h, exit.Fail(exit.Failed, "", "%w", err)
	}
	return d, h, nil
}

// ErrNotKept means that a valid head could not be saved, which is no fault of the bank.
var ErrNotKept = errors.New("cannot save the heads that were seen")

// Besides returns the named file, or else the one of a name beside another file.
func Besides(named, path, name string) string {
	if named != "" {
		return named
	}
	return filepath.Join(filepath.Dir(path), name)
}

// TrustOf reads trust anchors and, if a path is given, a revocation list.
func TrustOf(anchors, list string) (*identity.Trust, error) {
	pem, err := words.ReadBounded(nil, anchors, control.MaxControlBody)
	if err != nil {
		return nil, err
	}
	var crl []byte
	if list != "" {
		if crl, err = words.ReadBounded(nil, list, control.MaxControlBody); err != nil {
			return nil, err
		}
	}
	trust, err := identity.NewTrust(pem, crl)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%s: %w", anchors, err)
	}
	return trust, nil
}

// HeadLine describes a head for people.
func HeadLine(h contract.Head) string {
	return fmt.Sprintf("%d entries, root %.16s…, signed %s", h.Size, h.Root, words.Moment(h.Time))
}

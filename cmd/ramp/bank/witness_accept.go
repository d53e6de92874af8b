package bank

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/proof"
	"ramp/bank/audit"
)

// acceptedRestore describes an accepted log of a restored bank, and what it replaces.
type acceptedRestore struct {
	Since  uint64 `json:"since"`            // size of the log at the last seen head that it still contains; 0: none
	Before uint64 `json:"before,omitempty"` // size of the lost log when it was last seen; 0: nothing was lost
	File   string `json:"file,omitempty"`   // file with the heads of the lost log
}

func (a *acceptedRestore) String() string {
	if a.Before == 0 {
		return "it contradicts no earlier head: there was nothing to accept"
	}
	since := "it shares no head with the earlier log"
	if a.Since > 0 {
		since = fmt.Sprintf("it shares the first %d entries of the earlier log", a.Since)
	}
	return fmt.Sprintf("accepted; it replaces a log of %d entries: %s; the earlier heads are in %s", a.Before, since, a.File)
}

// acceptRestore accepts the log of a restored bank on the user's responsibility. A head that
// contradicts nothing is accepted as usual.
func (w *witness) acceptRestore(ctx context.Context) error {
	a, err := w.newest(ctx)
	if err != nil {
		return exit.Fail(exit.Failed, "", "no answer: %w", err)
	}
	_, h, err := w.heads.TakeProof(a.Proof, w.bank, w.trust, true)
	seen := witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time, Accepted: &acceptedRestore{}}
	var lost *proof.Contradiction
	switch {
	case errors.As(err, &lost):
		return w.begin(ctx, lost)
	case err != nil:
		return err
	}
	seen.Accepted.Since = h.Size
	return w.report(seen)
}

// begin saves the heads seen so far to a file of their own, and continues from the latest one that
// the bank's log extends, or from none.
func (w *witness) begin(ctx context.Context, lost *proof.Contradiction) error {
	taken := acceptedRestore{Before: w.heads.SeenSize(w.bank), File: w.heads.Aside(lost.Name() + "-before.json")}
	b, err := w.heads.Memory.Only(w.bank).Encode()
	if err != nil {
		return err
	}
	if err := config.ReplaceFile(taken.File, append(b, '\n'), 0o600); err != nil {
		return err
	}
	for n := w.heads.Memory.Count(w.bank) - 1; n >= 0; n-- {
		trial := proof.HeadFile{Path: w.heads.Path, Memory: w.heads.Memory.First(w.bank, n)}
		taken.Since = trial.SeenSize(w.bank)
		h, err := w.try(ctx, trial)
		if errors.Is(err, errNotGrown) {
			continue
		}
		if err != nil {
			return err
		}
		return w.report(witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time, Accepted: &taken})
	}
	return exit.Fail(exit.Failed, "", "the log of %s cannot be verified", w.bank)
}

// errNotGrown means that the bank's log does not extend a memory's.
var errNotGrown = errors.New("the log is a different one")

// try adds the bank's newest head to a memory, and saves the memory if the head extends it.
func (w *witness) try(ctx context.Context, trial proof.HeadFile) (audit.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, w.stale)
	defer cancel()
	a, err := w.ask(ctx, trial.SeenSize(w.bank))
	if err != nil {
		return audit.Seen{}, exit.Fail(exit.Failed, "", "no answer: %w", err)
	}
	d, h, err := proof.OpenProof(a.Proof, w.bank, w.trust)
	if err != nil {
		return audit.Seen{}, err
	}
	if err := audit.Fresh(h.Head, time.Now(), w.stale); err != nil {
		return audit.Seen{}, exit.Fail(exit.Failed, "", "%w", err)
	}
	if err := trial.Memory.Newest(h, d.From, d.Growth); err != nil {
		return audit.Seen{}, fmt.Errorf("%w: %w", errNotGrown, err)
	}
	if err := trial.Save(); err != nil {
		return audit.Seen{}, fmt.Errorf("%w: %w", proof.ErrNotKept, err)
	}
	return audit.Seen{Head: h.Head, ID: h.ID, DER: bytes.Clone(h.DER)}, nil
}

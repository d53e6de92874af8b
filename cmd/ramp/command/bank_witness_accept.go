package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"ramp/bank/audit"
)

// acceptedRestore says what was taken of a bank that went back, and what was put aside.
type acceptedRestore struct {
	Since  uint64 `json:"since"`            // size of the log at the last head that was seen and is in it still; 0: none is
	Before uint64 `json:"before,omitempty"` // size of the log that was lost, when it was seen last; 0: nothing was lost
	File   string `json:"file,omitempty"`   // the heads that were seen of it
}

func (a *acceptedRestore) String() string {
	if a.Before == 0 {
		return "it contradicts nothing that was seen: there was nothing to accept"
	}
	since := "nothing that was seen before is in it"
	if a.Since > 0 {
		since = fmt.Sprintf("it has the first %d entries of the log that was seen before", a.Since)
	}
	return fmt.Sprintf("taken, though %d entries were seen: %s; what was seen is in %s", a.Before, since, a.File)
}

// acceptRestore takes the log of a bank that went back, on its owner's word. A head that
// contradicts nothing is taken as ever.
func (w *witness) acceptRestore(ctx context.Context) error {
	a, err := w.newest(ctx)
	if err != nil {
		return fail(exitFailed, "", "no answer: %w", err)
	}
	_, h, err := w.heads.takeProof(a.Proof, w.bank, w.trust, true)
	seen := witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time, Accepted: &acceptedRestore{}}
	var lost *contradiction
	switch {
	case errors.As(err, &lost):
		return w.begin(ctx, lost)
	case err != nil:
		return err
	}
	seen.Accepted.Since = h.Size
	return w.report(seen)
}

// begin goes on from the latest head that was seen and that the bank's log grew out
// of, or from none. What was seen is put aside first.
func (w *witness) begin(ctx context.Context, lost *contradiction) error {
	taken := acceptedRestore{Before: w.heads.seenSize(w.bank), File: w.heads.aside(lost.name() + "-before.json")}
	b, err := w.heads.memory.Only(w.bank).Encode()
	if err != nil {
		return err
	}
	if err := replaceFile(taken.File, append(b, '\n'), 0o600); err != nil {
		return err
	}
	for n := w.heads.memory.Count(w.bank) - 1; n >= 0; n-- {
		trial := headFile{w.heads.path, w.heads.memory.First(w.bank, n)}
		taken.Since = trial.seenSize(w.bank)
		h, err := w.try(ctx, trial)
		if errors.Is(err, errNotGrown) {
			continue
		}
		if err != nil {
			return err
		}
		return w.report(witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time, Accepted: &taken})
	}
	return fail(exitFailed, "", "the log of %s holds in no way", w.bank)
}

// errNotGrown: the bank's log did not grow out of what a memory has.
var errNotGrown = errors.New("the log is another one")

// try takes the bank's newest head into a memory, and keeps that if it holds.
func (w *witness) try(ctx context.Context, trial headFile) (audit.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, w.stale)
	defer cancel()
	a, err := w.ask(ctx, trial.seenSize(w.bank))
	if err != nil {
		return audit.Seen{}, fail(exitFailed, "", "no answer: %w", err)
	}
	d, h, err := openProof(a.Proof, w.bank, w.trust)
	if err != nil {
		return audit.Seen{}, err
	}
	if err := audit.Fresh(h.Head, time.Now(), w.stale); err != nil {
		return audit.Seen{}, fail(exitFailed, "", "%w", err)
	}
	if err := trial.memory.Newest(h, d.From, d.Growth); err != nil {
		return audit.Seen{}, fmt.Errorf("%w: %w", errNotGrown, err)
	}
	if err := trial.save(); err != nil {
		return audit.Seen{}, fmt.Errorf("%w: %w", errNotKept, err)
	}
	return audit.Seen{Head: h.Head, ID: h.ID, DER: bytes.Clone(h.DER)}, nil
}

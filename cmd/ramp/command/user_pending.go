package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// pendingBuy is an order to buy that was noted before it was given: the same command,
// given again after it was killed, goes on with that purchase and does not buy a second
// one. The note has the purchase's ID. It is forgotten once the result was shown.
type pendingBuy struct {
	file *os.File // nil: nothing is noted
	id   string
	old  bool // an earlier command has noted it
}

// maxBuyNote bounds a note, in bytes: an ID and the end of its line.
const maxBuyNote = maxID + 1

// noteBuy finds the note of an order in an agent's directory, or makes one with an ID.
// While another command with the same order waits for its result there is none: who
// gives it a second time then has other ways to say what is meant.
func noteBuy(dir, order, id string) (*pendingBuy, error) {
	sum := sha256.Sum256([]byte(order))
	if err := os.MkdirAll(filepath.Join(dir, pendingName), 0o700); err != nil {
		return nil, fail(exitFailed, "", "note of the order: %w", err)
	}
	f, err := lockNote(filepath.Join(dir, pendingName, "buy-"+hex.EncodeToString(sum[:8])))
	if err != nil {
		return nil, fail(exitFailed, "", "note of the order: %w", err)
	}
	p := &pendingBuy{file: f, id: id}
	if f == nil {
		return p, nil
	}
	var b [maxBuyNote]byte
	n, _ := f.ReadAt(b[:], 0) // a short one is cut off, or new
	if there, whole := strings.CutSuffix(string(b[:n]), "\n"); whole && validID(there) {
		p.id, p.old = there, true
		return p, nil
	}
	return p, p.write(id)
}

// write notes an ID in place of what was noted.
func (p *pendingBuy) write(id string) error {
	p.id = id
	err := p.file.Truncate(0)
	if err == nil {
		_, err = p.file.WriteAt([]byte(id+"\n"), 0)
	}
	if err = errors.Join(err, p.file.Sync()); err != nil {
		return fail(exitFailed, "", "note of the order: %w", err)
	}
	return nil
}

// close forgets the note if the result was shown; otherwise the same command finds it.
func (p *pendingBuy) close(shown bool) {
	if p.file == nil {
		return
	}
	if shown {
		_ = os.Remove(p.file.Name()) // a note too many only finds what was shown
	}
	closeNote(p.file)
}

// resume says which ID the order gets: the noted one, unless that purchase came to
// nothing, was given back, or its slots are over, since then the same command means a new one.
func (p *pendingBuy) resume(ctx context.Context, agent *caller, fresh string) (string, error) {
	if !p.old {
		return p.id, nil
	}
	var before message.Purchase
	if err := agent.call(ctx, "POST", "/v1/purchase", idCall{ID: p.id}, &before); err != nil {
		return p.id, nil //nolint:nilerr // it was never begun: it is now
	}
	if undecided(before.State) || before.Settled && before.State == user.StateSettled && lies(before, time.Now()) {
		return p.id, nil
	}
	p.old = false
	return fresh, p.write(fresh)
}

// lies reports whether a unit of a purchase ends after now, and was not given back.
func lies(p message.Purchase, now time.Time) bool {
	return slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool {
		return u.End.After(now) && u.State != user.StateCancelled
	})
}

// tell says that a purchase is one of an earlier command.
func (p *pendingBuy) tell(c *cobra.Command, got message.Purchase) {
	if p.old && got.ID == p.id && got.Settled {
		fmt.Fprintf(stderr(c), "note: this was bought at %s by a command that was interrupted; give it again for one more\n", secondTime(got.Created))
	}
}

// notes reports whether the order is noted: one with an ID of its own is bought once
// in any case, one with --again means one more, and a quote buys nothing.
func (o buyFlags) notes() bool { return o.id == "" && !o.again && !o.quote }

// noted is the order in words that are the same for the same command.
func (o buyFlags) noted(text string) string {
	return fmt.Sprintf("%q %q %d %s %t %q %q %s %q %q", text, o.request.words, o.rounds, o.roundLimit, o.noEarlyClose, o.optimize, o.maxCost, o.maxWait, o.mode, o.acceptCounter)
}

package user

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

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// pendingBuy is a note of a purchase that is written before it is ordered. If the command is
// killed, the same command finds the note, which holds the purchase's ID, and resumes that purchase
// rather than buying a second one. The note is removed once the result was shown.
type pendingBuy struct {
	file *os.File // nil: there is no note
	id   string
	old  bool // an earlier command wrote it
}

// maxBuyNote bounds a note, in bytes: an ID and a newline.
const maxBuyNote = control.MaxID + 1

// noteBuy finds the note of an order in an agent's directory, or writes one with an ID. It does
// without a note while another command holds it: a concurrent order can use --id or --again.
func noteBuy(dir, order, id string) (*pendingBuy, error) {
	sum := sha256.Sum256([]byte(order))
	if err := os.MkdirAll(filepath.Join(dir, cli.PendingName), 0o700); err != nil {
		return nil, exit.Fail(exit.Failed, "", "note of the order: %w", err)
	}
	f, err := cli.LockNote(filepath.Join(dir, cli.PendingName, "buy-"+hex.EncodeToString(sum[:8])))
	if err != nil {
		return nil, exit.Fail(exit.Failed, "", "note of the order: %w", err)
	}
	p := &pendingBuy{file: f, id: id}
	if f == nil {
		return p, nil
	}
	var b [maxBuyNote]byte
	n, _ := f.ReadAt(b[:], 0) // a short one is new, or was cut off by a crash
	if there, whole := strings.CutSuffix(string(b[:n]), "\n"); whole && control.ValidID(there, control.MaxID) {
		p.id, p.old = there, true
		return p, nil
	}
	return p, p.write(id)
}

func (p *pendingBuy) write(id string) error {
	p.id = id
	err := p.file.Truncate(0)
	if err == nil {
		_, err = p.file.WriteAt([]byte(id+"\n"), 0)
	}
	if err = errors.Join(err, p.file.Sync()); err != nil {
		return exit.Fail(exit.Failed, "", "note of the order: %w", err)
	}
	return nil
}

// close removes the note if the result was shown; otherwise the same command will find it.
func (p *pendingBuy) close(shown bool) {
	if p.file == nil {
		return
	}
	if shown {
		_ = os.Remove(p.file.Name()) // a note left over only finds a result that was shown
	}
	cli.CloseNote(p.file)
}

// resume chooses the ID of the order: the noted one, unless that purchase failed, was cancelled or
// its slots have ended. In these cases the same command means a new purchase.
func (p *pendingBuy) resume(ctx context.Context, agent *control.Client, fresh string) (string, error) {
	if !p.old {
		return p.id, nil
	}
	var before message.Purchase
	if err := control.Purchase.Ask(ctx, agent, control.IDCall{ID: p.id}, &before); err != nil {
		return p.id, nil //nolint:nilerr // it never began, and begins now
	}
	if user.Undecided(before.State) || before.Settled && before.State == user.StateSettled && ahead(before, time.Now()) {
		return p.id, nil
	}
	p.old = false
	return fresh, p.write(fresh)
}

// ahead reports whether a unit of a purchase ends after now and is not cancelled.
func ahead(p message.Purchase, now time.Time) bool {
	return slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool {
		return u.End.After(now) && u.State != user.StateCancelled
	})
}

// mention tells the user if the purchase was made by an earlier command.
func (p *pendingBuy) mention(c *cobra.Command, got message.Purchase) {
	if p.old && got.ID == p.id && got.Settled {
		fmt.Fprintf(cli.Notes(c), "note: an interrupted command bought this at %s; repeat the command to buy another\n", words.At(got.Created))
	}
}

// notes reports whether the order needs a note. One with an ID is bought only once anyway, --again
// means another purchase, a quote buys nothing, and nothing else is recognised without a session.
func (o buyFlags) notes() bool { return o.id == "" && !o.again && !o.quote && control.Session() != "" }

// noted identifies the order: it is equal for equal commands in one session.
func (o buyFlags) noted(text string) string {
	return fmt.Sprintf("%s %q %q %d %s %t %q %q %s %q %q", control.Session(), text, o.request.Words(), o.rounds, o.roundLimit, o.noEarlyClose, o.optimize, o.maxCost, o.maxWait, o.mode, o.acceptCounter)
}

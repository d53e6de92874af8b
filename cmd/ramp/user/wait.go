package user

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// Bounds of trying again.
const (
	maxTrying   = 30 * 24 * time.Hour
	tryFirst    = 2 * time.Second // pause after the first failure
	tryMost     = 5 * time.Minute // pauses double up to this
	maxAttempts = 1 << 16
	letGoTime   = 3 * time.Second // to cancel the current attempt after an interrupt
)

// trying is a purchase that is tried until it succeeds or the time is up.
type trying struct {
	c      *cobra.Command
	agent  *control.Client
	orders func(id string) (control.BuyCall, error)
	until  time.Time
	begun  time.Time
	first  string // ID of the first attempt; the others append a number
}

// buyUntil tries again and again. Each attempt has an ID of its own and is made once: those that
// an earlier command with the same --id made are not repeated.
func buyUntil(c *cobra.Command, agent *control.Client, first control.BuyCall, orders func(id string) (control.BuyCall, error), until time.Time) (message.Purchase, error) {
	t := trying{c: c, agent: agent, orders: orders, until: until, begun: time.Now(), first: first.ID}
	call, pause := first, tryFirst
	for n := 1; ; n++ {
		p, err := cli.FollowPurchase(c, agent, control.Buy, call, call.ID)
		if err != nil {
			return t.interrupted(call.ID, p, err)
		}
		if !worthTrying(p) || n == maxAttempts {
			return p, nil
		}
		if !p.Created.Before(t.begun) { // made by this command
			if over := t.wait(p, pause); over {
				return p, nil
			}
			pause = min(2*pause, tryMost)
		}
		if c.Context().Err() != nil {
			return p, t.nothingHeld()
		}
		if call, err = orders(fmt.Sprintf("%s.%d", t.first, n+1)); err != nil {
			return p, err
		}
	}
}

// worthTrying reports whether a purchase failed for a reason that may go away by itself.
func worthTrying(p message.Purchase) bool {
	return p.State == user.StateFailed || p.State == user.StateInterrupted || p.State == user.StateVoid && cli.PurchaseCode(p, false) == exit.Nothing
}

// wait pauses before the next attempt, and reports whether the time is up instead.
func (t trying) wait(p message.Purchase, pause time.Duration) (over bool) {
	pause = pause/2 + rand.N(pause) // so that buyers that failed together do not collide again
	next := time.Now().Add(pause)
	if next.After(t.until) {
		return true
	}
	why := cmp.Or(cli.ReasonsLine(p.Reasons, p.Deadline), p.Why)
	show := cli.ProgressOf(t.c)
	show.Note(fmt.Sprintf("%s: not bought (%s); nothing is held; trying again at %s%s", cli.NameOf(p), why, words.Clock(next), cli.UntilWords(t.until)))
	defer show.End()
	select {
	case <-time.After(pause):
	case <-t.c.Context().Done():
	}
	return false
}

// interrupted cancels the current attempt, so that no offer stays held. The bank still decides
// a contract that is signed by then.
func (t trying) interrupted(id string, p message.Purchase, err error) (message.Purchase, error) {
	if t.c.Context().Err() == nil {
		return p, err
	}
	if p.ID != "" {
		id = p.ID
	}
	switch last := t.letGo(id); {
	case last.Settled:
		return last, nil
	case user.Undecided(last.State):
		return p, err
	}
	return p, t.nothingHeld()
}

// letGo cancels a purchase and returns its state. The purchase may have ended just before, and
// then there is no cancellation to follow.
func (t trying) letGo(id string) message.Purchase {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.Context()), letGoTime)
	defer cancel()
	var last message.Purchase
	_ = control.Cancel.Follow(ctx, t.agent, control.IDCall{ID: id}, func(line control.ProgressLine) error { // the last state matters more than the error
		last = line.Purchase
		return nil
	})
	if last.ID == "" || user.Undecided(last.State) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.Context()), letGoTime)
		defer cancel()
		if err := control.Purchase.Ask(ctx, t.agent, control.IDCall{ID: id}, &last); err != nil {
			return message.Purchase{} // it never began
		}
	}
	return last
}

func (t trying) nothingHeld() error {
	left := max(time.Until(t.until), 0).Round(time.Second)
	return exit.Fail(exit.Failed, fmt.Sprintf("repeat the command with --wait %s to continue", left), "Interrupted. Nothing was bought.")
}

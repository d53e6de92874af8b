package command

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// Bounds of trying again.
const (
	maxTrying   = 30 * 24 * time.Hour
	tryFirst    = 2 * time.Second // pause after the first failure
	tryMost     = 5 * time.Minute // pauses double up to this
	maxAttempts = 1 << 16
	letGoTime   = 3 * time.Second // to stop what is going on when interrupted
)

// trying is a purchase that is tried until it is bought or the time is over.
type trying struct {
	c      *cobra.Command
	agent  *caller
	orders func(id string) (buyCall, error)
	until  time.Time
	begun  time.Time
	first  string // ID of the first attempt; the others have a number behind it
}

// buyUntil tries again and again. An attempt that is over is not repeated: each
// has its own ID, and one that was made before, with the same --id, counts.
func buyUntil(c *cobra.Command, agent *caller, first buyCall, orders func(id string) (buyCall, error), until time.Time) error {
	t := trying{c: c, agent: agent, orders: orders, until: until, begun: time.Now(), first: first.ID}
	call, pause := first, tryFirst
	for n := 1; ; n++ {
		p, err := followPurchase(c, agent, "/v1/buy", call, call.ID)
		if err != nil {
			return t.interrupted(call.ID, p, err)
		}
		if p.Settled {
			warnLow(c, agent)
		}
		if !worthTrying(p) || n == maxAttempts {
			return printResult(c, agent, p, false)
		}
		if !p.Created.Before(t.begun) { // not one of an earlier command
			if over := t.wait(p, pause); over {
				return printResult(c, agent, p, false)
			}
			pause = min(2*pause, tryMost)
		}
		if c.Context().Err() != nil {
			return t.nothingHeld()
		}
		if call, err = orders(fmt.Sprintf("%s.%d", t.first, n+1)); err != nil {
			return err
		}
	}
}

// worthTrying reports whether a purchase failed for what may change by itself.
func worthTrying(p message.Purchase) bool {
	switch p.State {
	case user.StateFailed, user.StateInterrupted:
		return true
	case user.StateVoid:
		return purchaseCode(p, false) == exitNothing
	}
	return false
}

// wait pauses before the next attempt; it reports whether there is none.
func (t trying) wait(p message.Purchase, pause time.Duration) (over bool) {
	pause = pause/2 + rand.N(pause) // so that buyers who failed together do not meet again
	next := time.Now().Add(pause)
	if next.After(t.until) {
		return true
	}
	why := reasonsLine(p.Reasons, p.Deadline)
	if why == "" {
		why = p.Why
	}
	show := progressOf(t.c)
	show.note(fmt.Sprintf("%s: not bought (%s); nothing is held; trying again at %s%s", nameOf(p), why, next.UTC().Format("15:04:05"), untilWords(t.until)))
	defer show.end()
	select {
	case <-time.After(pause):
	case <-t.c.Context().Done():
	}
	return false
}

// interrupted stops the attempt that is going on, so that nothing stays held. What
// is signed by then is the bank's to decide.
func (t trying) interrupted(id string, p message.Purchase, err error) error {
	if t.c.Context().Err() == nil {
		return err
	}
	if p.ID != "" {
		id = p.ID
	}
	switch last := t.letGo(id); {
	case last.Settled:
		return printResult(t.c, t.agent, last, false)
	case undecided(last.State):
		return err
	}
	return t.nothingHeld()
}

// letGo asks to cancel a purchase, and tells how it stands then. It may have come
// to its end by itself just before: then nobody tells of a cancellation.
func (t trying) letGo(id string) message.Purchase {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.Context()), letGoTime)
	defer cancel()
	var last message.Purchase
	_ = t.agent.stream(ctx, "/v1/cancel", idCall{ID: id}, func(raw json.RawMessage) error { // how it stands tells more
		var line progressLine
		err := json.Unmarshal(raw, &line)
		last = line.Purchase
		return err
	})
	if last.ID == "" || undecided(last.State) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.Context()), letGoTime)
		defer cancel()
		if err := t.agent.call(ctx, http.MethodPost, "/v1/purchase", idCall{ID: id}, &last); err != nil {
			return message.Purchase{} // it was never begun
		}
	}
	return last
}

func (t trying) nothingHeld() error {
	left := max(time.Until(t.until), 0).Round(time.Second)
	return fail(exitFailed, fmt.Sprintf("the same command with --wait %s goes on", left), "interrupted; nothing is bought and nothing is held")
}

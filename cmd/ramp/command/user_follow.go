package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// following shows how one purchase goes on.
type following struct {
	c     *cobra.Command
	agent *caller
	show  *progress
	id    string // that was asked for
	last  message.Purchase
	done  bool
	asked bool   // its owner, for approval
	heard func() // ends the wait for the first change: an agent that has just begun looks for the market

	begun   time.Time
	silence *time.Timer             // nil: nothing is awaited that may never come
	giveUp  context.CancelCauseFunc // the following
}

// errUndecided ends the following of a purchase whose bank does not say what it decided.
var errUndecided = errors.New("not decided in time")

// followPurchase shows how a purchase goes on until it is over.
func followPurchase(c *cobra.Command, agent *caller, path string, call any, id string) (message.Purchase, error) {
	return (&following{c: c, agent: agent, show: progressOf(c), id: id, begun: time.Now()}).follow(path, call)
}

func (f *following) follow(path string, call any) (message.Purchase, error) {
	defer f.show.end()
	f.heard = sync.OnceFunc(awaiting(f.c, "looking for the market", joinTime))
	defer f.heard()
	ctx, cancel := context.WithCancelCause(f.c.Context())
	defer cancel(nil)
	f.giveUp = cancel
	err := f.agent.stream(ctx, path, call, f.line)
	f.await(message.Purchase{})
	if errors.Is(context.Cause(ctx), errUndecided) && !f.done {
		return f.last, f.silent()
	}
	if err == nil && !f.done { // an agent in this process stops telling when the command is interrupted
		err = cmp.Or(f.c.Context().Err(), f.agent.gone(ctx, errors.New("the agent stopped before the purchase was over")))
	}
	if f.last.ID != "" {
		f.id = f.last.ID
	}
	return f.last, f.stopped(err)
}

// line takes one change of the purchase.
func (f *following) line(raw json.RawMessage) error {
	var line progressLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return err
	}
	if line.Error != "" {
		return errors.New(line.Error)
	}
	f.heard()
	if f.last.ID == "" && line.Purchase.ID != f.id && !line.Done {
		fmt.Fprintf(stderr(f.c), "going on with %s, a purchase of the same request that is not decided yet (--again buys one more)\n", line.Purchase.ID)
	}
	f.last, f.done = line.Purchase, line.Done
	f.await(f.last)
	switch {
	case f.last.State != user.StateApproval || f.done:
		f.show.purchase(f.last)
	case !f.asked:
		f.asked = true
		return f.approve()
	}
	return nil
}

// await gives a bank that has to decide a while longer than it may take, or as long as
// the command goes on trying. Of a purchase that had to be decided before the command
// began, the bank is asked only now.
func (f *following) await(p message.Purchase) {
	if f.silence != nil {
		f.silence.Stop()
		f.silence = nil
	}
	if f.done || p.State != user.StateConfirming && p.State != user.StateDeciding || p.Until.IsZero() {
		return
	}
	patience, err := f.c.Flags().GetDuration("wait")
	if err != nil || patience < answerTime {
		patience = answerTime
	}
	from := p.Until
	if from.Before(f.begun) {
		from = f.begun
	}
	f.silence = time.AfterFunc(time.Until(from.Add(patience)), func() { f.giveUp(errUndecided) })
}

// silent says what goes on when the bank did not say what it decided.
func (f *following) silent() error {
	hint := "what was signed is carried on by the next 'ramp user' command that joins the market; "
	if f.agent.daemon {
		hint = "the daemon asks on; "
	}
	return fail(exitUnreachable, hint+"'ramp user show "+f.last.ID+"' tells what became of it", "%s has not said what it decided about %s, which it had to by %s",
		f.last.Bank.Name(), f.last.ID, f.last.Until.UTC().Format("15:04:05 UTC"))
}

// stopped says what goes on when somebody stopped looking.
func (f *following) stopped(err error) error {
	var e *exitError
	interrupted := errors.Is(err, context.Canceled)
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(f.id, quotePrefix):
		return f.unquoted(err)
	case errors.Is(err, errGone):
		return fail(exitUnreachable, "it goes on with it once it runs again; 'ramp user show "+f.id+"' tells what became of it", "purchase %s: %w", f.id, errGone)
	case errors.As(err, &e):
		return err
	case !interrupted:
		return fail(exitFailed, "'ramp user show "+f.id+"' tells what became of it", "purchase %s: %w", f.id, err)
	case f.agent.daemon:
		return fail(exitFailed, "'ramp user cancel "+f.id+"' stops it", "interrupted; the daemon goes on with purchase %s", f.id)
	}
	return fail(exitFailed, "'ramp user show "+f.id+"' tells what became of it",
		"interrupted; what was signed of purchase %s is carried on by the next 'ramp user' command that joins the market", f.id)
}

// unquoted is stopped of a question what something would cost: nothing is kept of it.
func (f *following) unquoted(err error) error {
	if errors.Is(err, context.Canceled) {
		return fail(exitFailed, "the same command asks again", "interrupted; nothing was to be bought")
	}
	return withCode(exitFailed, err)
}

// approve asks the person at the terminal; without one the answer is no. The
// purchase may end while the person thinks, so nobody waits for the answer.
func (f *following) approve() error {
	f.show.end()
	in, ok := f.c.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) || f.waits() {
		return f.answer(f.last.ID, false)
	}
	printPurchase(stderr(f.c), f.last)
	fmt.Fprint(stderr(f.c), "Buy this? [y/N] ")
	id := f.last.ID
	go func() { // a read of a terminal cannot be stopped: it ends with the process
		if err := f.answer(id, yes(in)); err != nil {
			fmt.Fprintln(stderr(f.c), "ramp: your answer did not arrive:", err)
		}
	}()
	return nil
}

// waits reports whether the command goes on trying (--wait): then a set that does
// not meet the request is no reason to ask.
func (f *following) waits() bool {
	d, err := f.c.Flags().GetDuration("wait")
	return err == nil && d > 0 && len(f.last.Violations) > 0
}

func yes(in io.Reader) bool {
	line, err := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

func (f *following) answer(id string, yes bool) error {
	return f.agent.call(f.c.Context(), "POST", "/v1/approve", idCall{ID: id, Yes: yes}, nil)
}

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

type following struct {
	c      *cobra.Command
	agent  *control.Client
	show   *Progress
	id     string // the requested ID
	last   message.Purchase
	done   bool
	asked  bool        // the owner was asked for approval
	said   atomic.Bool // and has answered, or was interrupted
	outbid bool        // others were faster, and the owner knows
	heard  func()      // ends the note that is shown until the first change arrives

	begun   time.Time
	silence *time.Timer             // runs out if the bank does not decide; nil if it has nothing to decide
	giveUp  context.CancelCauseFunc // stops following
}

// errUndecided stops following a purchase whose bank does not report a decision.
var errUndecided = errors.New("not decided in time")

// FollowPurchase shows the progress of a purchase until it is over.
func FollowPurchase[Q any](c *cobra.Command, agent *control.Client, call control.Endpoint[Q, control.ProgressLine], q Q, id string) (message.Purchase, error) {
	return (&following{c: c, agent: agent, show: ProgressOf(c), id: id, begun: time.Now()}).follow(func(ctx context.Context, line func(control.ProgressLine) error) error {
		return call.Follow(ctx, agent, q, line)
	})
}

func (f *following) follow(stream func(ctx context.Context, line func(control.ProgressLine) error) error) (message.Purchase, error) {
	defer f.show.End()
	f.heard = sync.OnceFunc(Awaiting(f.c, "looking for the market", node.JoinTime+node.FirstSite))
	defer f.heard()
	ctx, cancel := context.WithCancelCause(f.c.Context())
	defer cancel(nil)
	f.giveUp = cancel
	err := stream(ctx, f.line)
	f.await(message.Purchase{})
	if errors.Is(context.Cause(ctx), errUndecided) && !f.done {
		return f.last, f.silent()
	}
	if err == nil && !f.done { // an interrupt ends the stream of an agent in this process without an error
		err = cmp.Or(f.c.Context().Err(), f.agent.Gone(ctx, errors.New("the agent stopped before the purchase was over")))
	}
	if f.last.ID != "" {
		f.id = f.last.ID
	}
	return f.last, f.stopped(err)
}

func (f *following) line(line control.ProgressLine) error {
	if line.Error != "" {
		return errors.New(line.Error)
	}
	f.heard()
	if f.last.ID == "" && line.Purchase.ID != f.id && !line.Done {
		fmt.Fprintf(Notes(f.c), "resuming %s, an undecided purchase of the same request (--again buys another)\n", ShortID(f.agent, line.Purchase.ID))
	}
	if f.last.ID != "" && line.Purchase.ID != f.last.ID {
		f.bidAgain()
	}
	f.last, f.done = line.Purchase, line.Done
	f.await(f.last)
	switch {
	case f.last.State != user.StateApproval || f.done:
		f.show.Purchase(f.last)
	case !f.asked:
		f.asked = true
		return f.approve()
	}
	return nil
}

// bidAgain says once why the agent bids again, and lets the owner be asked about the new offer.
func (f *following) bidAgain() {
	f.show.End()
	switch {
	case f.asked && f.said.Load():
		f.show.Say(fmt.Sprintf("the offer no longer stands; nothing is held; bidding again, for at most %s %s", f.last.Total.Cents(), f.last.Currency))
	case !f.outbid:
		f.show.Say(f.lostWords() + "; bidding again")
	}
	f.outbid, f.asked = true, false
	f.said.Store(false)
}

// lostWords say why the purchase so far was lost, which its agent knows.
func (f *following) lostWords() string {
	var p message.Purchase
	err := control.Purchase.Ask(f.c.Context(), f.agent, control.IDCall{ID: f.last.ID}, &p)
	switch {
	case err != nil:
		return "the offer no longer stands"
	case p.State == user.StateVoid:
		return "the contract was not signed in time; nothing was paid"
	case p.Refused == protocol.CodeBusy:
		return "others took the cores first; nothing is held"
	case p.Refused == protocol.CodeHoldLimit:
		return "the site holds no more for you at once; nothing is held"
	}
	return "the offer expired before every site had agreed; nothing is held"
}

// await bounds the wait for a bank's decision: the bank's own deadline plus some patience, or
// --wait if that is longer. If the deadline passed before the command began, the bank is only
// being asked now, so the wait is counted from the command's beginning.
func (f *following) await(p message.Purchase) {
	if f.silence != nil {
		f.silence.Stop()
		f.silence = nil
	}
	if f.done || p.State != user.StateConfirming && p.State != user.StateDeciding || p.Until.IsZero() {
		return
	}
	from := p.Until
	if from.Before(f.begun) {
		from = f.begun
	}
	f.silence = time.AfterFunc(time.Until(from.Add(max(f.wait(), control.AnswerTime))), func() { f.giveUp(errUndecided) })
}

// silent is the error of a purchase whose bank reported no decision in time.
func (f *following) silent() error {
	hint := "the next 'ramp user' command that joins the market asks again; "
	if f.agent.Daemon {
		hint = "the daemon keeps asking; "
	}
	return exit.Fail(exit.Unreachable, hint+f.outcomeHint(), "%s has not reported its decision on %s, due at %s",
		f.last.Bank.Name(), ShortID(f.agent, f.last.ID), words.Clock(f.last.Until))
}

func (f *following) outcomeHint() string {
	return "'ramp user show " + ShortID(f.agent, f.id) + "' shows the outcome"
}

// stopped explains what happens to the purchase after following it ended with err.
func (f *following) stopped(err error) error {
	if err == nil {
		return nil
	}
	var e *exit.Error
	short := ShortID(f.agent, f.id)
	interrupted := errors.Is(err, context.Canceled)
	switch {
	case protocol.IsQuote(f.id):
		return f.unquoted(err)
	case errors.Is(err, control.ErrGone):
		return exit.Fail(exit.Unreachable, f.goneHint(), "purchase %s: %w", short, control.ErrGone)
	case errors.As(err, &e):
		return err
	case !interrupted:
		return exit.Fail(exit.Failed, f.outcomeHint(), "purchase %s: %w", short, err)
	case f.last.State == user.StateApproval && f.withdraws():
		return exit.Fail(exit.Failed, "", "Interrupted. Nothing was bought.")
	case f.agent.Daemon:
		return exit.Fail(exit.Failed, "'ramp user cancel "+short+"' stops it", "interrupted; the daemon continues purchase %s", short)
	}
	return exit.Fail(exit.Failed, f.outcomeHint(),
		"interrupted; if %s is signed already, the next 'ramp user' command that joins the market completes it", short)
}

// goneHint is for a daemon that ended: it resumes only what may be signed.
func (f *following) goneHint() string {
	switch f.last.State {
	case "", user.StateBidding, user.StateApproval, user.StateVoting:
		return "nothing was signed as far as is known; the same command can be given again; " + f.outcomeHint()
	}
	return "the daemon resumes it when it runs again; " + f.outcomeHint()
}

// unquoted is stopped for a quote, which leaves no purchase behind.
func (f *following) unquoted(err error) error {
	if errors.Is(err, context.Canceled) {
		return exit.Fail(exit.Failed, "repeat the command to ask again", "Interrupted. A quote buys nothing.")
	}
	return exit.WithCode(exit.Failed, err)
}

// withdraws declines for an owner who is interrupted, and reports whether no answer came before.
func (f *following) withdraws() bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.c.Context()), WarnTime)
	defer cancel()
	return f.said.CompareAndSwap(false, true) && control.Approve.Ask(ctx, f.agent, control.IDCall{ID: f.last.ID}, nil) == nil
}

// CanAsk reports whether a person can read and answer a question: on a terminal, in its foreground.
func CanAsk(c *cobra.Command) bool {
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) || !isTerminal(Stderr(c)) {
		return false
	}
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// approve asks the person at the terminal; without a terminal the answer is no. It does not
// wait for the answer, since the purchase may end first.
func (f *following) approve() error {
	f.show.End()
	in, ok := f.c.InOrStdin().(*os.File)
	retries := f.wait() > 0 && len(f.last.Violations) > 0 // a later attempt may meet the request
	if unasked, _ := f.c.Flags().GetBool("yes"); !ok || !isTerminal(in) || retries || unasked {
		return f.answer(f.last.ID, false)
	}
	PrintPurchase(Stderr(f.c), Shortened(f.agent, f.last))
	fmt.Fprintf(Stderr(f.c), "Buy this for %s %s? [y/N] ", f.last.Total.Cents(), f.last.Currency)
	id := f.last.ID
	go func() { // reading a terminal cannot be interrupted: the goroutine ends with the process
		answer := yes(in)
		if !f.said.CompareAndSwap(false, true) {
			return
		}
		if err := f.answer(id, answer); err != nil {
			fmt.Fprintln(Stderr(f.c), "ramp: the agent did not get your answer:", err)
		}
	}()
	return nil
}

// wait is how long the command tries again, or zero.
func (f *following) wait() time.Duration {
	d, _ := f.c.Flags().GetDuration("wait") // zero for a command without the flag
	return d
}

// Answer asks the person at the terminal; without a terminal the answer is "".
func Answer(c *cobra.Command, question string) string {
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return ""
	}
	fmt.Fprint(Stderr(c), question)
	line, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no answer
	return strings.TrimSpace(line)
}

func yes(in io.Reader) bool {
	line, err := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

func (f *following) answer(id string, yes bool) error {
	return control.Approve.Ask(f.c.Context(), f.agent, control.IDCall{ID: id, Yes: yes}, nil)
}

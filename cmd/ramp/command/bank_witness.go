package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// witness follows the heads of one bank.
type witness struct {
	ask    func(ctx context.Context, from uint64) (proofAnswer, error)
	bank   protocol.AgentID // empty: whoever answers the first time
	trust  *identity.Trust
	heads  headFile
	stale  time.Duration
	heard  time.Time // when it last answered; at first, the start
	report func(w witnessed) error
}

// witnessed is what a witness says, one JSON value per new head; the names are
// fixed. Alarm is fork, shrunk, stale, unproven or forged.
type witnessed struct {
	Bank   protocol.AgentID `json:"bank"`
	Size   uint64           `json:"size"`
	Root   string           `json:"root"`
	Signed time.Time        `json:"signed"`
	Alarm  string           `json:"alarm,omitempty"`
	Error  string           `json:"error,omitempty"`
	Heads  [][]byte         `json:"heads,omitempty"` // of a fork, a log that went back or without proof: both, as the bank signed them

	Accepted *acceptedRestore `json:"accepted,omitempty"` // the log was taken, though it contradicts what was seen
}

func newBankWitness() *cobra.Command {
	var dir, heads, list string
	var every, stale time.Duration
	var count int
	var accept bool
	c := &cobra.Command{
		Use: "witness [BANK]", Short: "Follow a bank's signed heads, and cry if it forks its log",
		Long: `Asks a bank for its newest signed head again and again, checks the signature and that
the log only grew, and remembers the head in a file. BANK is an agent ID; it is asked
over the market, as the user agent of --user. Without BANK the bank of --dir is asked
over its control socket.

On a fork, a shorter log, a head without proof or a silence the command writes a line
that begins with ALARM (with --json: "alarm") and ends with exit code 1. Two heads that
contradict each other are kept beside the file of --heads, as the bank signed them.

A bank that was restored from a backup goes back, and rightly. Whoever knows from its
operator that it was gives --accept-restore, once: the log that the bank has now is
taken, what was seen of the lost one is put aside, and the command ends.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if every < time.Millisecond || stale < time.Second || count < 0 {
				return fail(exitUsage, "", "--every %s, --stale %s, --count %d: want at least 1ms, 1s and 0", every, stale, count)
			}
			w := &witness{stale: stale, heard: time.Now(), report: func(h witnessed) error { return printWitnessed(c, h) }}
			done, err := w.open(c, args, dir, heads, list)
			if err != nil {
				return err
			}
			defer done()
			if accept {
				return w.acceptRestore(c.Context())
			}
			return w.follow(c.Context(), every, count)
		},
	}
	c.Flags().StringVar(&dir, "user", "", "directory of the user agent that asks BANK")
	c.Flags().StringVar(&heads, "heads", "", "file of the heads that were seen (default: heads.json in the agent's directory)")
	c.Flags().StringVar(&list, "crl", "", "a revocation list instead of the agent's own")
	durationVar(c.Flags(), &every, "every", time.Second, "pause between questions")
	durationVar(c.Flags(), &stale, "stale", 2*time.Minute, "longest silence, and age of a head, without an alarm")
	c.Flags().IntVar(&count, "count", 0, "end after so many heads that held; 0: never")
	c.Flags().BoolVar(&accept, "accept-restore", false, "take the log of a bank that was restored from a backup, and end")
	return c
}

// open reaches whoever answers: the bank's own directory, or the market.
func (w *witness) open(c *cobra.Command, args []string, dir, heads, list string) (func(), error) {
	var agent *caller
	var done func()
	var err error
	if len(args) == 1 {
		w.bank = protocol.AgentID(args[0])
		if err := w.bank.Validate(); err != nil {
			return nil, fail(exitUsage, "BANK is an agent ID, NAME@KEY", "%w", err)
		}
		if dir, err = agentDir(dir, "user"); err != nil {
			return nil, err
		}
		agent, done, err = reachUser(c, dir)
	} else {
		if dir, err = dirOf(c, "bank"); err != nil {
			return nil, err
		}
		agent, done, err = openBank(c, dir)
	}
	if err != nil {
		return nil, err
	}
	w.ask = func(ctx context.Context, from uint64) (a proofAnswer, err error) {
		err = agent.call(ctx, "POST", "/v1/proof", proofCall{Bank: w.bank, From: from}, &a)
		return a, err
	}
	if err := w.prepare(dir, heads, list); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// prepare reads whom the witness trusts and what it has seen.
func (w *witness) prepare(dir, heads, list string) error {
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return err
	}
	if list == "" {
		w.trust, err = cfg.trust()
	} else {
		w.trust, err = trustOf(cfg.path(cfg.Trust), list)
	}
	if err != nil {
		return err
	}
	if heads == "" {
		heads = filepath.Join(dir, headsName)
	}
	w.heads, err = openHeads(heads)
	return err
}

// follow asks until the context is done, an alarm is raised or enough heads held.
func (w *witness) follow(ctx context.Context, every time.Duration, count int) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for n := 0; ; {
		held, err := w.look(ctx)
		if err != nil {
			return err
		}
		if held {
			n++
		}
		if count > 0 && n >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// look asks once. A bank that does not answer is stale only after a while.
func (w *witness) look(ctx context.Context) (held bool, err error) {
	a, err := w.newest(ctx)
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err != nil && time.Since(w.heard) < w.stale:
		return false, nil
	case err != nil:
		return false, w.alarm(witnessed{Bank: w.bank}, fmt.Errorf("%w: no answer for %s: %w", audit.ErrStale, w.stale, err))
	}
	return w.judge(a.Proof)
}

// newest is what the bank answers.
func (w *witness) newest(ctx context.Context) (proofAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, w.stale)
	defer cancel()
	a, err := w.ask(ctx, w.heads.seenSize(w.bank))
	if err != nil || w.bank != "" {
		return a, err
	}
	w.bank = a.Bank
	if from := w.heads.seenSize(w.bank); from > 0 { // known from an earlier run: growth is proved from there
		return w.ask(ctx, from)
	}
	return a, nil
}

// judge takes what the bank showed.
func (w *witness) judge(doc []byte) (bool, error) {
	before, _ := w.heads.memory.Last(w.bank)
	_, h, err := w.heads.takeProof(doc, w.bank, w.trust, true)
	seen := witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time}
	if err == nil {
		err = audit.Fresh(h.Head, time.Now(), w.stale)
	}
	if errors.Is(err, audit.ErrUnknown) && before.Size == 0 {
		return false, nil
	}
	if errors.Is(err, errNotKept) {
		return false, fail(exitFailed, "make room, or name another file with --heads; without them a fork cannot be noticed", "%w", err)
	}
	if err != nil {
		return false, w.alarm(seen, err)
	}
	w.heard = time.Now()
	if before.ID == h.ID {
		return false, nil // nothing new
	}
	return true, w.report(seen)
}

// alarm says loudly what is wrong, with the evidence, and is the command's error.
func (w *witness) alarm(seen witnessed, err error) error {
	seen.Alarm, seen.Error = alarmName(err), err.Error()
	var both *contradiction
	if errors.As(err, &both) {
		seen.Heads = [][]byte{both.seen.DER, both.shown.DER}
	}
	hint := ""
	var told *exitError
	if errors.As(err, &told) {
		hint = told.hint
	}
	return errors.Join(w.report(seen), fail(exitFailed, hint, "%w", err))
}

func alarmName(err error) string {
	names := []struct {
		err  error
		name string
	}{{audit.ErrFork, "fork"}, {audit.ErrShrunk, "shrunk"}, {audit.ErrStale, "stale"}, {contract.ErrSignature, "forged"}}
	for _, n := range names {
		if errors.Is(err, n.err) {
			return n.name
		}
	}
	return "unproven"
}

func printWitnessed(c *cobra.Command, h witnessed) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), h)
	}
	if h.Alarm != "" {
		fmt.Fprintf(stdout(c), "ALARM %s %s: %s\n", h.Alarm, h.Bank, h.Error)
		return nil
	}
	fmt.Fprintf(stdout(c), "%s %s\n", h.Bank, headLine(contract.Head{Size: h.Size, Root: h.Root, Time: h.Signed}))
	if h.Accepted != nil {
		fmt.Fprintf(stdout(c), "  %s\n", h.Accepted)
	}
	return nil
}

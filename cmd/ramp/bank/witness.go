package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/proof"
	"ramp/bank/audit"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

type witness struct {
	ask    func(ctx context.Context, from uint64) (control.ProofAnswer, error)
	bank   protocol.AgentID // empty: the first to answer
	trust  *identity.Trust
	heads  proof.HeadFile
	stale  time.Duration
	heard  time.Time // last answer; at first, the start
	report func(w witnessed) error
}

// witnessed is the report of a witness, one JSON value per new head; the names are fixed. Alarm is
// fork, shrunk, stale, unproven or forged.
type witnessed struct {
	Bank   protocol.AgentID `json:"bank"`
	Size   uint64           `json:"size"`
	Root   string           `json:"root"`
	Signed time.Time        `json:"signed"`
	Alarm  string           `json:"alarm,omitempty"`
	Error  string           `json:"error,omitempty"`
	Heads  [][]byte         `json:"heads,omitempty"` // for fork, shrunk and unproven: the two contradicting heads, as the bank signed them

	Accepted *acceptedRestore `json:"accepted,omitempty"` // the log was accepted although it contradicts an earlier head
}

func newBankWitness() *cobra.Command {
	var dir, heads, list string
	var every, stale time.Duration
	var count int
	var accept bool
	c := &cobra.Command{
		Use: "witness [BANK]", Short: "Watch a bank's signed heads, and raise an alarm if it forks its log", GroupID: "trust",
		Long: `Ask a bank for its newest signed head again and again, check the signature and that the log only
grew, and record the head in a file. BANK is an agent ID, asked over the market as the user
agent of --user. Without BANK, the bank of --dir is asked over its control socket.

On a fork, a shorter log, a head without proof or a long silence, the command writes a line that
begins with ALARM (with --json: "alarm") and ends with 1. It keeps two contradicting heads, as
the bank signed them, beside the file of --heads.

The log of a bank restored from a backup is legitimately shorter. If you know from its operator
that it was restored, give --accept-restore once: the command accepts the present log, sets the
recorded heads of the lost one aside, and ends.`,
		Example: "  ramp bank witness --dir bank --count 1\n  ramp bank witness bank@twydvacamjkgwndgcgaplaxazl6srtpm --user ann",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case every < time.Millisecond:
				return exit.Fail(exit.Usage, "", "--every %s: want 1ms or more", every)
			case stale < time.Second:
				return exit.Fail(exit.Usage, "", "--stale %s: want 1s or more", stale)
			case count < 0:
				return exit.Fail(exit.Usage, "", "--count %d: want zero or more", count)
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
	c.Flags().StringVar(&dir, "user", "", "`DIR` of the user agent that asks BANK")
	c.Flags().StringVar(&heads, "heads", "", "`FILE` of the heads seen so far (default: heads.json in the agent's directory)")
	c.Flags().StringVar(&list, "crl", "", "`FILE` with a revocation list, instead of the agent's own")
	cli.DurationVar(c.Flags(), &every, "every", time.Second, "pause between questions")
	cli.DurationVar(c.Flags(), &stale, "stale", 2*time.Minute, "raise an alarm after this much silence, or for a head this old")
	c.Flags().IntVar(&count, "count", 0, "end after `N` good heads; 0: never")
	c.Flags().BoolVar(&accept, "accept-restore", false, "accept the log of a bank that was restored from a backup, and end")
	return c
}

// open reaches the bank: over its control socket, or over the market.
func (w *witness) open(c *cobra.Command, args []string, dir, heads, list string) (func(), error) {
	var agent *control.Client
	var done func()
	var err error
	if len(args) == 1 {
		w.bank = protocol.AgentID(args[0])
		if err := w.bank.Validate(); err != nil {
			return nil, exit.Fail(exit.Usage, "BANK is an agent ID, NAME@KEY", "%w", err)
		}
		if dir, err = config.AgentDir(dir, "user"); err != nil {
			return nil, err
		}
		agent, done, err = cli.ReachUser(c, dir)
	} else {
		if dir, err = cli.DirOf(c, "bank"); err != nil {
			return nil, err
		}
		agent, done, err = cli.OpenBank(c)
	}
	if err != nil {
		return nil, err
	}
	w.ask = func(ctx context.Context, from uint64) (a control.ProofAnswer, err error) {
		err = control.BankProof.Ask(ctx, agent, control.ProofCall{Bank: w.bank, From: from}, &a)
		return a, err
	}
	if err := w.prepare(dir, heads, list); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// prepare reads the trust anchors and the heads seen before.
func (w *witness) prepare(dir, heads, list string) error {
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return err
	}
	if list == "" {
		w.trust, err = cfg.TrustAnchors()
	} else {
		w.trust, err = proof.TrustOf(cfg.Path(cfg.Trust), list)
	}
	if err != nil {
		return err
	}
	heads = cmp.Or(heads, filepath.Join(dir, proof.HeadsFile))
	w.heads, err = proof.OpenHeads(heads)
	return err
}

// follow asks until the context ends, there is an alarm, or enough heads were verified.
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
	return w.check(a.Proof)
}

func (w *witness) newest(ctx context.Context) (control.ProofAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, w.stale)
	defer cancel()
	a, err := w.ask(ctx, w.heads.SeenSize(w.bank))
	if err != nil || w.bank != "" {
		return a, err
	}
	w.bank = a.Bank
	if from := w.heads.SeenSize(w.bank); from > 0 { // seen in an earlier run: the proof must start there
		return w.ask(ctx, from)
	}
	return a, nil
}

func (w *witness) check(doc []byte) (bool, error) {
	before, _ := w.heads.Memory.Last(w.bank)
	_, h, err := w.heads.TakeProof(doc, w.bank, w.trust, true)
	seen := witnessed{Bank: w.bank, Size: h.Size, Root: h.Root, Signed: h.Time}
	if err == nil {
		err = audit.Fresh(h.Head, time.Now(), w.stale)
	}
	if errors.Is(err, audit.ErrUnknown) && before.Size == 0 {
		return false, nil
	}
	if errors.Is(err, proof.ErrNotKept) {
		return false, exit.Fail(exit.Failed, "make room, or name another file with --heads; a fork is only noticed if heads are remembered", "%w", err)
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

// alarm reports what is wrong, with the evidence, and returns the command's error.
func (w *witness) alarm(seen witnessed, err error) error {
	seen.Alarm, seen.Error = proof.AlarmFile(err), err.Error()
	var both *proof.Contradiction
	if errors.As(err, &both) {
		seen.Heads = [][]byte{both.Seen.DER, both.Shown.DER}
	}
	hint := ""
	var cause *exit.Error
	if errors.As(err, &cause) {
		hint = cause.Hint
	}
	return errors.Join(w.report(seen), exit.Fail(exit.Failed, hint, "%w", err))
}

func printWitnessed(c *cobra.Command, h witnessed) error {
	if cli.WantsJSON(c) {
		return cli.PrintJSON(cli.Stdout(c), h)
	}
	if h.Alarm != "" {
		fmt.Fprintf(cli.Stdout(c), "ALARM %s %s: %s\n", h.Alarm, h.Bank, h.Error)
		return nil
	}
	fmt.Fprintf(cli.Stdout(c), "%s %s\n", h.Bank, proof.HeadLine(contract.Head{Size: h.Size, Root: h.Root, Time: h.Signed}))
	if h.Accepted != nil {
		fmt.Fprintf(cli.Stdout(c), "  %s\n", h.Accepted)
	}
	return nil
}

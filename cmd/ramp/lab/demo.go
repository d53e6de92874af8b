// Package lab has the commands that try RAMP out: the demonstration, benchmarks,
// simulations and soak tests.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// demoCurrency is the currency of the demonstration, and demoCredit its user's money: enough for
// every job at its highest price.
const (
	demoCurrency = "CPU"
	demoCredit   = 10_000_000 * protocol.Credit
)

func NewDemo() *cobra.Command {
	var d demo
	c := &cobra.Command{
		Use: "demo", Short: "Bring up a whole market on this machine and buy in it", GroupID: "start",
		Long: `Start one bank, twenty resource agents and one user agent, each in its own process with its own
key, journal and address, and buy: thirteen jobs of 16 to 20,480 cores, a request of three
units, and one that nobody can meet. With --policy, a smaller market shows a settlement mode:
jobs of seconds are bought, run, fail, and are paid or not, with everybody's balance after each
step. With --keep, the market stays up and commands to try are printed;
'ramp demo --stop --dir DIR' ends it.`,
		Example: "  ramp demo\n  ramp demo --keep --dir market\n  ramp demo --stop --dir market",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d.c = c
			if d.stop && (d.keep || d.logs != "" || d.policy != "") {
				return exit.Fail(exit.Usage, "", "--stop goes with --dir alone")
			}
			if d.stop {
				return d.stopKept(c.Context())
			}
			ctx, done := hungUp(c.Context())
			defer done()
			return d.byPolicy(ctx)
		},
	}
	c.Flags().BoolVar(&d.keep, "keep", false, "leave the market up, and print commands to try")
	c.Flags().BoolVar(&d.stop, "stop", false, "end the market kept in --dir")
	c.Flags().StringVar(&d.dir, "dir", "", "keep all state in `DIR`, new or empty (default: a temporary one)")
	c.Flags().StringVar(&d.policy, "policy", "", "show a settlement mode instead of the thirteen jobs, `POLICY`: barter or metered")
	cli.Choices(c, "policy", "barter", "metered")
	c.Flags().StringVar(&d.logs, "logs", "", "replay the workload logs in `DIR`; missing ones are synthetic")
	return c
}

// hungUp also ends a context when the terminal is closed: a market that nobody watches is taken down.
// Under nohup it goes on.
func hungUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// demo is one run of the demonstration.
type demo struct {
	c      *cobra.Command
	keep   bool
	stop   bool
	dir    string
	logs   string
	policy string
	ca     *identity.CA
	bank   *process
	sites  []*process
	user   *process
	begun  time.Time
	place  func(resource int) (log string, base int64) // real log, or empty

	count int  // resources; 0: all twenty
	quiet bool // print nothing
	bare  bool // resources also answer bare frames

	result demoResult
}

// demoResult is the demonstration in JSON; the names are fixed.
type demoResult struct {
	Resources int                `json:"resources"`
	Purchases []message.Purchase `json:"purchases"`
	Failed    []demoFailure      `json:"failed"`
	LedgerSum int64              `json:"ledger_sum"` // micro-credits over all accounts of all currencies
	ElapsedMS int64              `json:"elapsed_ms"`
	Dir       string             `json:"dir,omitempty"`
}

// demoFailure is a job that was not bought, with the reason.
type demoFailure struct {
	RFQ     string         `json:"rfq"`
	Reasons map[string]int `json:"reasons"`
	Advice  []string       `json:"advice,omitempty"`
	Why     string         `json:"why"`
}

// say prints a line of the result: to standard output, or with --json to standard error.
func (d *demo) say(format string, args ...any) {
	if d.quiet {
		return
	}
	w := cli.Stdout(d.c)
	if cli.WantsJSON(d.c) {
		w = cli.Stderr(d.c)
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// progress is say for a line that --quiet leaves out.
func (d *demo) progress(format string, args ...any) {
	if q, err := d.c.Flags().GetBool("quiet"); err != nil || !q {
		d.say(format, args...)
	}
}

// run brings the market up, buys, and takes it down again.
func (d *demo) run(ctx context.Context) (err error) {
	if err := d.openLogs(); err != nil {
		return err
	}
	d.begun = time.Now()
	d.result = demoResult{Purchases: []message.Purchase{}, Failed: []demoFailure{}}
	made, err := d.makeDir()
	if err != nil {
		return err
	}
	defer func() { err = d.cleanUp(ctx, made, err) }()
	if err := d.bringUp(ctx); err != nil {
		return err
	}
	for _, j := range demoJobs() {
		if err := d.buy(ctx, j); err != nil {
			return err
		}
	}
	if err := d.finish(ctx); err != nil {
		return err
	}
	if d.keep {
		if err := d.invite(ctx); err != nil {
			return err
		}
		return d.explainKept()
	}
	return nil
}

// cleanUp ends the market unless it is kept. It removes a temporary directory, but not after a
// failure, when the logs may help.
func (d *demo) cleanUp(ctx context.Context, made bool, err error) error {
	if d.keep && err == nil {
		return nil
	}
	err = errors.Join(err, d.takeDown())
	if made && (err == nil || ctx.Err() != nil) {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}

// byPolicy runs the demonstration that --policy selects.
func (d *demo) byPolicy(ctx context.Context) error {
	if d.policy != "" && d.logs != "" {
		return exit.Fail(exit.Usage, "", "--logs goes without --policy")
	}
	switch d.policy {
	case "":
		return d.run(ctx)
	case "barter":
		return d.barter(ctx)
	case "metered":
		return d.metered(ctx)
	}
	return exit.Fail(exit.Usage, "", "--policy %q: want barter or metered", d.policy)
}

// makeDir makes the directory of the demonstration. made reports that it is to be removed.
func (d *demo) makeDir() (made bool, err error) {
	if d.dir != "" {
		return false, d.ownDir()
	}
	d.dir, err = os.MkdirTemp("", "ramp-demo-")
	return !d.keep, err
}

// buy buys one job and shows its progress.
func (d *demo) buy(ctx context.Context, j demoJob) error {
	doc, err := j.document(time.Now())
	if err != nil {
		return err
	}
	show := cli.ProgressOf(d.c)
	defer show.End()
	call := control.BuyCall{ID: control.NewPurchaseID(false), Name: j.name, Document: string(doc.XML())}
	last, err := d.user.buy(ctx, call, func(p message.Purchase) {
		if show.Live {
			show.Purchase(p)
		}
	})
	if err != nil {
		return err
	}
	show.End()
	d.note(last)
	return nil
}

// note records and shows the outcome of a job.
func (d *demo) note(p message.Purchase) {
	if p.Settled {
		d.result.Purchases = append(d.result.Purchases, p)
	} else {
		d.result.Failed = append(d.result.Failed, demoFailure{p.RFQ, p.Reasons, p.Advice, p.Why})
	}
	if !cli.WantsJSON(d.c) {
		d.show(cli.Stdout(d.c), p)
	}
}

// show prints a job in a few lines: the sites found, each round, and what was bought or why not.
func (d *demo) show(w io.Writer, p message.Purchase) {
	fmt.Fprintf(w, "\n%s: %d found", p.RFQ, p.Found)
	for _, r := range p.Rounds {
		fmt.Fprintf(w, " | round %d: best %s, %d offer, %d refuse", r.Round, cli.BestLine(r.Best), r.Offers, r.Refusals)
	}
	fmt.Fprintln(w)
	if !p.Settled {
		fmt.Fprintf(w, "  not bought: %s\n", p.Why)
		fmt.Fprintf(w, "  %s\n", strings.Join(append([]string{fmt.Sprintf("%d of %d sites can do it: %s", cli.Offering(p), p.Found, cli.ReasonsLine(p.Reasons, p.Deadline))}, p.Advice...), "; "))
		return
	}
	for _, u := range p.Units {
		fmt.Fprintf(w, "  bought %d cores on %s, %s to %s, at %s per core-hour: %s %s (reservation %s)\n",
			u.Cores, u.Resource, words.ClockTime(u.Start), u.End.Local().Format("15:04 MST"), u.Price.Cents(), u.Cost.Cents(), p.Currency, u.Reservation)
	}
	fmt.Fprintf(w, "  total %s %s; all %d voted in %.0f ms; settled in %.0f ms; contract %.16s…\n", p.Total.Cents(), p.Currency, len(p.Units), p.VoteMS, p.SettleMS, p.Contract)
}

// books are the bank's balances, their sum in micro-credits, and an audit.
func (d *demo) books(ctx context.Context) (balances []message.Balance, sum int64, audit control.AuditReport, err error) {
	if err = ask(ctx, d.bank, control.Balances, control.StatementCall{}, &balances); err != nil {
		return nil, 0, audit, err
	}
	for _, b := range balances {
		sum += int64(b.Balance)
	}
	err = ask(ctx, d.bank, control.Audit, control.AuditCall{}, &audit)
	return balances, sum, audit, err
}

// wrongBooks is the error of books that do not add up, or nil.
func wrongBooks(sum int64, audit control.AuditReport) error {
	if len(audit.Bad) == 0 && sum == 0 {
		return nil
	}
	return exit.Fail(exit.Failed, "", "the ledger does not add up: sum %d, %s", sum, audit.Problems())
}

// finish shows the balances and the sum of the ledger.
func (d *demo) finish(ctx context.Context) error {
	balances, sum, audit, err := d.books(ctx)
	if err != nil {
		return err
	}
	d.result.LedgerSum = sum
	d.result.ElapsedMS = time.Since(d.begun).Milliseconds()
	d.result.Resources = len(d.sites)
	if d.keep {
		d.result.Dir = d.dir
	}
	err = cli.Show(d.c, d.result, func(w io.Writer) {
		fmt.Fprintf(w, "\nbalances at %s:\n", d.bank.name)
		cli.Table(w, cli.BalanceRows(balances)...)
		d.say("%d jobs bought, %d not; sum of the ledger %d; audit: %d entries, %d faults; %.1f s",
			len(d.result.Purchases), len(d.result.Failed), d.result.LedgerSum, audit.Entries, len(audit.Bad), time.Since(d.begun).Seconds())
	})
	return errors.Join(err, wrongBooks(sum, audit))
}

// takeDown ends every process, the user first.
func (d *demo) takeDown() error {
	var errs []error
	for _, p := range append([]*process{d.user}, append(d.sites, d.bank)...) {
		if p != nil {
			errs = append(errs, p.end())
		}
	}
	return errors.Join(errs...)
}

// explainKept prints commands to try in a market that is kept.
func (d *demo) explainKept() error {
	dir := func(name string) string { return words.ShellWord(filepath.Join(d.dir, name)) }
	id := "ID"
	if len(d.result.Purchases) > 0 {
		id = d.result.Purchases[0].ID
	}
	d.say(`
the market keeps running in %[1]s; try:
  %[5]s user list --dir %[2]s
  %[5]s user resources --dir %[2]s
  %[5]s user quote --dir %[2]s %[6]s
  %[5]s user buy --dir %[2]s %[6]s
  %[5]s user receipt --dir %[2]s %[4]s --out receipt
  %[5]s user trace --dir %[2]s %[4]s
  %[5]s resource offers --dir %[7]s
  %[5]s bank audit --dir %[3]s
or join it as a newcomer, and buy:
  %[5]s user init --join %[8]s --dir %[9]s
  %[5]s user buy --cores 256 --wall 1h --within 12h --dir %[9]s
end it with:
  %[5]s demo --stop --dir %[1]s`, words.ShellWord(d.dir), dir("user"), dir("bank"), id, words.ShellWord(os.Args[0]), dir("request.xml"), dir("atlas1"), dir("invitation.ramp"), dir("me"))
	return nil
}

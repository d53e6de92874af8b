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
	"ramp/agents/demo"
	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func NewDemo() *cobra.Command {
	d := &demoRun{}
	d.Out = d
	c := &cobra.Command{
		Use: "demo", Short: "Bring up a whole market on this machine and buy in it", GroupID: "start",
		Long: `Start one bank, twenty resource agents and one user agent, each in its own process with its own
key, journal and address, and buy: thirteen jobs of 16 to 20,480 cores, a request of three
units, and one that nobody can meet. With --policy barter or metered, a smaller market shows a
payment mode: jobs of seconds are bought, run, fail, and are paid or not, with everybody's
balance after each step. With --policy priority, four sites of a federation are filled with jobs
that count, and an urgent one suspends one of them, which goes on afterwards. With --keep, the
market stays up and commands to try are printed; 'ramp demo --stop --dir DIR' ends it.`,
		Example: "  ramp demo\n  ramp demo --keep --dir market\n  ramp demo --stop --dir market",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d.c = c
			if d.stop && (d.Keep || d.Logs != "" || d.policy != "") {
				return exit.Fail(exit.Usage, "", "--stop takes only --dir")
			}
			if d.stop {
				return d.Stop(c.Context())
			}
			ctx, done := hungUp(c.Context())
			defer done()
			if d.policy != "" {
				return d.mode(ctx)
			}
			return d.run(ctx)
		},
	}
	c.Flags().BoolVar(&d.Keep, "keep", false, "leave the market up, and print commands to try")
	c.Flags().BoolVar(&d.stop, "stop", false, "end the market kept in --dir")
	c.Flags().StringVar(&d.Dir, "dir", "", "keep all state in `DIR`, new or empty (default: a temporary one)")
	c.Flags().StringVar(&d.policy, "policy", "", "show a payment mode, or a federation, instead of the thirteen jobs, `POLICY`: barter, metered or priority")
	cli.Choices(c, "policy", demo.Policies...)
	c.Flags().StringVar(&d.Logs, "logs", "", "replay the workload logs in `DIR`; missing ones are synthetic")
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

type demoRun struct {
	demo.Market
	c      *cobra.Command
	stop   bool
	policy string
	result demoResult
	shown  *cli.Progress
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

// Say prints a line of the result: to standard output, or with --json to standard error.
func (d *demoRun) Say(line string) {
	w := cli.Stdout(d.c)
	if cli.WantsJSON(d.c) {
		w = cli.Stderr(d.c)
	}
	fmt.Fprintln(w, line)
}

// Note is Say for a line that --quiet leaves out.
func (d *demoRun) Note(line string) {
	if q, err := d.c.Flags().GetBool("quiet"); err != nil || !q {
		d.Say(line)
	}
}

// SoFar shows on a terminal how many agents are up.
func (d *demoRun) SoFar(line string) {
	if d.shown == nil {
		d.shown = cli.ProgressOf(d.c)
	}
	d.shown.SoFar("%s", line)
}

func (d *demoRun) Done() {
	if d.shown != nil {
		d.shown.End()
	}
}

// run brings the market up, buys, and takes it down again.
func (d *demoRun) run(ctx context.Context) (err error) {
	d.result = demoResult{Purchases: []message.Purchase{}, Failed: []demoFailure{}}
	made, err := d.Open(ctx)
	defer func() { err = d.Close(ctx, made, err) }()
	if err != nil {
		return err
	}
	for _, j := range demo.Jobs() {
		if err := d.buy(ctx, j); err != nil {
			return err
		}
	}
	if err := d.finish(ctx); err != nil {
		return err
	}
	if !d.Keep {
		return nil
	}
	if err := d.Invite(ctx); err != nil {
		return err
	}
	d.explainKept()
	return nil
}

func (d *demoRun) mode(ctx context.Context) error {
	if d.Logs != "" {
		return exit.Fail(exit.Usage, "", "--logs and --policy cannot be combined")
	}
	show := func(text string) {
		if !cli.WantsJSON(d.c) {
			d.Say(text)
		}
	}
	var result any
	var err error
	if d.policy == demo.PriorityPolicy {
		result, err = d.ShowPriority(ctx, show)
	} else {
		result, err = d.Show(ctx, d.policy, show)
	}
	if err != nil {
		return err
	}
	return cli.Show(d.c, result, func(io.Writer) {
		if d.Keep {
			d.Say(fmt.Sprintf("the market keeps running in %[1]s; see '%[2]s'; end it with: ramp demo --stop --dir %[1]s", words.ShellWord(d.Dir), d.seen()))
		}
	})
}

// seen is a command that shows what has happened.
func (d *demoRun) seen() string {
	if d.policy == demo.PriorityPolicy {
		return "ramp user auction urgent --dir " + words.ShellWord(filepath.Join(d.Dir, "ann"))
	}
	return "ramp bank statement NAME --dir " + words.ShellWord(filepath.Join(d.Dir, "bank"))
}

func (d *demoRun) buy(ctx context.Context, j demo.Job) error {
	doc, err := j.Document(time.Now())
	if err != nil {
		return err
	}
	show := cli.ProgressOf(d.c)
	defer show.End()
	call := control.BuyCall{ID: control.NewPurchaseID(false), Name: j.Name, Document: string(doc.XML())}
	last, err := d.User.Buy(ctx, call, func(p message.Purchase) {
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
func (d *demoRun) note(p message.Purchase) {
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
func (d *demoRun) show(w io.Writer, p message.Purchase) {
	fmt.Fprintf(w, "\n%s: %d found", p.RFQ, p.Found)
	for _, r := range p.Rounds {
		fmt.Fprintf(w, " | round %d: best %s, %d offer, %d refuse", r.Round, order.BestLine(r.Best), r.Offers, r.Refusals)
	}
	fmt.Fprintln(w)
	if !p.Settled {
		fmt.Fprintf(w, "  not bought: %s\n", p.Why)
		fmt.Fprintf(w, "  %s\n", strings.Join(append([]string{fmt.Sprintf("%d of %d sites can do it: %s", cli.Offering(p), p.Found, cli.ReasonsLine(p.Reasons, p.Deadline))}, cli.HelpWords(p)...), "; "))
		return
	}
	for _, u := range p.Units {
		fmt.Fprintf(w, "  bought %d cores on %s, %s to %s, at %s per core-hour: %s %s (reservation %s)\n",
			u.Cores, u.Resource, words.ClockTime(u.Start), words.EndTime(u.Start, u.End)+" "+words.Zone(), u.Price.Cents(), u.Cost.Cents(), p.Currency, u.Reservation)
	}
	fmt.Fprintf(w, "  total %s %s; all %d voted in %.0f ms; settled in %.0f ms; contract %.16s…\n", p.Total.Cents(), p.Currency, len(p.Units), p.VoteMS, p.SettleMS, p.Contract)
}

func (d *demoRun) finish(ctx context.Context) error {
	balances, sum, audit, err := d.Books(ctx)
	if err != nil {
		return err
	}
	d.result.LedgerSum = sum
	d.result.ElapsedMS = time.Since(d.Begun).Milliseconds()
	d.result.Resources = len(d.Sites)
	if d.Keep {
		d.result.Dir = d.Dir
	}
	err = cli.Show(d.c, d.result, func(w io.Writer) {
		fmt.Fprintf(w, "\nbalances at %s:\n", d.Bank.Name)
		cli.Table(w, cli.BalanceRows(balances)...)
		d.Say(fmt.Sprintf("%d jobs bought, %d not; sum of the ledger %d; audit: %d entries, %d faults; %.1f s",
			len(d.result.Purchases), len(d.result.Failed), d.result.LedgerSum, audit.Entries, len(audit.Bad), time.Since(d.Begun).Seconds()))
	})
	return errors.Join(err, demo.WrongBooks(sum, audit))
}

// explainKept prints commands to try in a market that is kept.
func (d *demoRun) explainKept() {
	dir := func(name string) string { return words.ShellWord(filepath.Join(d.Dir, name)) }
	id := "ID"
	if len(d.result.Purchases) > 0 {
		id = d.result.Purchases[0].ID
	}
	d.Say(fmt.Sprintf(`
the market keeps running in %[1]s; try:
  %[5]s user web --dir %[2]s
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
  %[5]s demo --stop --dir %[1]s`, words.ShellWord(d.Dir), dir("user"), dir("bank"), id, words.ShellWord(os.Args[0]), dir("request.xml"), dir("atlas1"), dir("invitation.ramp"), dir("me")))
}

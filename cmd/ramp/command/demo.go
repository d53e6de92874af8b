package command

import (
	"context"
	"encoding/json"
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

	"ramp/protocol"
	"ramp/protocol/message"
)

// demoCurrency is what the demonstration pays in, and demoCredit what its user
// has: enough for every job at the price that it names.
const (
	demoCurrency = "CPU"
	demoCredit   = 10_000_000 * protocol.Credit
)

func newDemo() *cobra.Command {
	var d demo
	c := &cobra.Command{
		Use:   "demo",
		Short: "Bring up a whole market on this machine and buy in it",
		Long: `Starts one bank, twenty resource agents and one user agent, each its own process
with its own key, journal and address, and buys: thirteen jobs of 16 to 20,480
cores, a request of three units, and one that nobody can meet. With --policy a smaller market
shows a settlement mode: jobs of seconds are bought, run, fail, and are paid or not,
and everybody's balances are shown after each step. With --keep the market stays up
and commands to try are printed; 'ramp demo --stop --dir DIR' ends it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d.c = c
			if d.stop && (d.keep || d.logs != "" || d.policy != "") {
				return fail(exitUsage, "", "--stop goes with --dir alone")
			}
			if d.stop {
				return d.stopKept(c.Context())
			}
			ctx, done := hungUp(c.Context())
			defer done()
			return d.byPolicy(ctx)
		},
	}
	c.Flags().BoolVar(&d.keep, "keep", false, "leave the market up")
	c.Flags().BoolVar(&d.stop, "stop", false, "end a market that was kept in --dir")
	c.Flags().StringVar(&d.dir, "dir", "", "keep all state in this directory, new or empty (default: a temporary one)")
	c.Flags().StringVar(&d.policy, "policy", "", "show a settlement mode in place of the thirteen jobs: barter or metered")
	c.Flags().StringVar(&d.logs, "logs", "", "replay the workload logs in this directory; what is missing is synthetic")
	return c
}

// hungUp ends a context when the terminal is closed, as at an interrupt: a market that
// nobody sees any more is taken down. Under nohup it goes on.
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
	bank   *process
	sites  []*process
	user   *process
	begun  time.Time
	place  func(resource int) (log string, base int64) // real log, or empty

	count int  // resources; 0: all twenty
	quiet bool // says nothing
	bare  bool // resources answer bare frames too

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

// demoFailure is a job that was not bought, and why.
type demoFailure struct {
	RFQ     string         `json:"rfq"`
	Reasons map[string]int `json:"reasons"`
	Advice  []string       `json:"advice,omitempty"`
	Why     string         `json:"why"`
}

func (d *demo) say(format string, args ...any) {
	if d.quiet {
		return
	}
	w := stdout(d.c)
	if wantsJSON(d.c) {
		w = stderr(d.c)
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// tell is say for what is only on the way to a result.
func (d *demo) tell(format string, args ...any) {
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
	defer func() {
		if d.keep && err == nil {
			return
		}
		interrupted := ctx.Err() != nil
		err = errors.Join(err, d.takeDown())
		if made && (err == nil || interrupted) { // after a failure the logs are wanted
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
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

// byPolicy runs the demonstration that was asked for.
func (d *demo) byPolicy(ctx context.Context) error {
	if d.policy != "" && d.logs != "" {
		return fail(exitUsage, "", "--logs goes without --policy")
	}
	switch d.policy {
	case "":
		return d.run(ctx)
	case "barter":
		return d.barter(ctx)
	case "metered":
		return d.metered(ctx)
	}
	return fail(exitUsage, "", "--policy %q: want barter or metered", d.policy)
}

// makeDir makes the directory of the demonstration; made says that it is a
// temporary one.
func (d *demo) makeDir() (made bool, err error) {
	if d.dir != "" {
		return false, d.ownDir()
	}
	d.dir, err = os.MkdirTemp("", "ramp-demo-")
	return !d.keep, err
}

// buy buys one job and shows how it goes.
func (d *demo) buy(ctx context.Context, j demoJob) error {
	doc, err := j.document(time.Now())
	if err != nil {
		return err
	}
	agent, err := d.user.call()
	if err != nil {
		return err
	}
	show := progressOf(d.c)
	defer show.end()
	call := buyCall{ID: newPurchaseID(false), Name: j.name, Document: string(doc.XML())}
	var last message.Purchase
	err = agent.stream(ctx, "/v1/buy", call, func(raw json.RawMessage) error {
		var line progressLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		last = line.Purchase
		if show.live {
			show.purchase(last)
		}
		if last.State == "awaiting approval" {
			return agent.call(ctx, "POST", "/v1/approve", idCall{ID: call.ID}, nil) // the demonstration approves nothing
		}
		return nil
	})
	if err != nil {
		return err
	}
	show.end()
	d.note(last)
	return nil
}

// note keeps and shows what became of a job.
func (d *demo) note(p message.Purchase) {
	if p.Settled {
		d.result.Purchases = append(d.result.Purchases, p)
	} else {
		d.result.Failed = append(d.result.Failed, demoFailure{p.RFQ, p.Reasons, p.Advice, p.Why})
	}
	if !wantsJSON(d.c) {
		d.show(stdout(d.c), p)
	}
}

// show prints a job in a few lines: what was found, each round, what was bought
// or why not.
func (d *demo) show(w io.Writer, p message.Purchase) {
	fmt.Fprintf(w, "\n%s: %d found", p.RFQ, p.Found)
	for _, r := range p.Rounds {
		fmt.Fprintf(w, " | round %d: best %s, %d offer, %d refuse", r.Round, bestLine(r.Best), r.Offers, r.Refusals)
	}
	fmt.Fprintln(w)
	if !p.Settled {
		fmt.Fprintf(w, "  not bought: %s\n", p.Why)
		fmt.Fprintf(w, "  %s\n", strings.Join(append([]string{fmt.Sprintf("%d of %d: %s", offering(p), p.Found, reasonsLine(p.Reasons, p.Deadline))}, p.Advice...), "; "))
		return
	}
	for _, u := range p.Units {
		fmt.Fprintf(w, "  bought %d cores on %s, %s to %s UTC, at %s per core-hour: %s %s (reservation %s)\n",
			u.Cores, u.Resource, clockTime(u.Start), u.End.UTC().Format("15:04"), money(u.Price), money(u.Cost), p.Currency, u.Reservation)
	}
	fmt.Fprintf(w, "  total %s %s; all %d voted in %.0f ms; settled in %.0f ms; contract %.16s…\n", money(p.Total), p.Currency, len(p.Units), p.VoteMS, p.SettleMS, p.Contract)
}

// finish shows the balances and the sum of the ledger.
func (d *demo) finish(ctx context.Context) error {
	bank, err := d.bank.call()
	if err != nil {
		return err
	}
	var balances []message.Balance
	if err := bank.call(ctx, "POST", "/v1/balances", statementCall{}, &balances); err != nil {
		return err
	}
	for _, b := range balances {
		d.result.LedgerSum += int64(b.Balance)
	}
	var audit auditReport
	if err := bank.call(ctx, "POST", "/v1/audit", nil, &audit); err != nil {
		return err
	}
	d.result.ElapsedMS = time.Since(d.begun).Milliseconds()
	d.result.Resources = len(d.sites)
	if d.keep {
		d.result.Dir = d.dir
	}
	if wantsJSON(d.c) {
		err = printJSON(stdout(d.c), d.result)
	} else {
		fmt.Fprintf(stdout(d.c), "\nbalances at %s:\n", d.bank.name)
		table(stdout(d.c), balanceRows(balances)...)
		d.say("%d jobs bought, %d not; sum of the ledger %d; audit: %d entries, %d faults; %.1f s",
			len(d.result.Purchases), len(d.result.Failed), d.result.LedgerSum, audit.Entries, len(audit.Bad), time.Since(d.begun).Seconds())
	}
	if len(audit.Bad) > 0 || d.result.LedgerSum != 0 {
		return errors.Join(err, fail(exitFailed, "", "the ledger does not add up: sum %d, %s", d.result.LedgerSum, audit.problems()))
	}
	return err
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

// explainKept prints what to try in a market that stays up.
func (d *demo) explainKept() error {
	dir := func(name string) string { return shellWord(filepath.Join(d.dir, name)) }
	d.say(`
the market stays up in %[1]s; try:
  %[5]s user list --dir %[2]s
  %[5]s user resources --dir %[2]s
  %[5]s user quote --dir %[2]s %[6]s
  %[5]s user buy --dir %[2]s %[6]s
  %[5]s user receipt --dir %[2]s %[4]s --out receipt
  %[5]s user trace --dir %[2]s %[4]s
  %[5]s resource offers --dir %[7]s
  %[5]s bank audit --dir %[3]s
or join it as somebody new, and buy:
  %[5]s user init --join %[8]s --dir %[9]s
  %[5]s user buy --cores 256 --wall 1h --within 12h --max-price 60 --dir %[9]s
end it with:
  %[5]s demo --stop --dir %[1]s`, shellWord(d.dir), dir("user"), dir("bank"), d.someID(), shellWord(os.Args[0]), dir("request.xml"), dir("atlas1"), dir("invitation.ramp"), dir("me"))
	return nil
}

func (d *demo) someID() string {
	if len(d.result.Purchases) > 0 {
		return d.result.Purchases[0].ID
	}
	return "ID"
}

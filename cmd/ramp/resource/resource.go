// Package resource has the commands of a site's administrator.
package resource

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/order"
	"ramp/agents/queue/local"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

func New() *cobra.Command {
	c := &cobra.Command{
		Use: "resource", Short: "Sell the time of a batch system", GroupID: "trade",
		Long: `A resource agent sells time on a site's batch system. Its configuration names the driver:
'slurm', 'pbs', 'local' (cores of this machine), 'command' (a program of your own) or 'swf' (a
workload log that acts as a live machine). 'ramp resource init' writes one.

If --dir has no configuration but subdirectories that do, 'serve' runs all these agents in one
daemon, at most 64, and 'status', 'balance', 'drain', 'resume', 'check --dry-run' and 'config
check' apply to all of them. The other commands need the --dir of one agent.`,
	}
	c.PersistentFlags().String("dir", "", "`DIR` of the agent (default: $RAMP_DIR, or ramp/resource below the data directory)")
	c.PersistentFlags().String("config", "", "configuration `FILE`, whose directory is then the agent's (default: config.yaml in --dir)")
	c.AddGroup(
		&cobra.Group{ID: "join", Title: "Join a market"},
		&cobra.Group{ID: "sales", Title: "What it sells"},
		&cobra.Group{ID: "money", Title: "What it earns"},
		&cobra.Group{ID: "pause", Title: "Pause and resume sales"},
	)
	cli.Add(c, newResourceInit(), cli.NewConfig("resource", cli.Fleet), newResourceCheck(), newResourceServe(),
		newResourceStatus(), newResourceOffers(), newResourceReservations(), cli.NewWeb("resource", "sales", oneAgent), newResourceQueue(), newResourceFederation(),
		cli.NewBalance("resource", askBalance), cli.NewStatement("resource", askStatements), newResourceReceipt(),
		newResourceDrain(), newResourceResume())
	return c
}

// oneAgent is the configuration of the one agent that a command is for.
func oneAgent(c *cobra.Command) ([]string, error) {
	path, err := cli.OneOfFleet(c)
	return []string{path}, err
}

func askResource[Q, A any](c *cobra.Command, call control.Endpoint[Q, A], q Q, a *A) error {
	path, err := cli.OneOfFleet(c)
	if err != nil {
		return err
	}
	return cli.AskResourceAt(c, path, call, q, a)
}

func newResourceServe() *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use: "serve", Short: "Run the resource agent as a daemon, or all agents below --dir", Args: cobra.NoArgs, GroupID: "join",
		Long: `Run the resource agent as a daemon, or all agents below --dir; if one of several ends, all do.
When it starts, an agent asks its banks which contracts name it, and sells nothing until each
has answered: its journal may be lost or an older copy. See "A lost journal" in
docs/OPERATIONS.md.`,
		Example: "  ramp resource serve --dir site",
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := cli.Fleet(c)
			switch {
			case err != nil:
				return err
			case len(paths) > 1:
				return cli.ServeFleet(c.Context(), paths, trust, cli.Stderr(c))
			}
			return node.ServeResource(c.Context(), paths[0], trust, cli.Stderr(c))
		},
	}
	c.Flags().BoolVar(&trust, "trust-journal", false, "sell without asking the banks first, if you know that the journal is complete")
	return c
}

func newResourceCheck() *cobra.Command {
	var rounds int
	var dry, isolated bool
	c := &cobra.Command{
		Use: "check [REQUEST]", Short: "Show what the agent would offer, round by round, and why", Args: cobra.MaximumNArgs(1), GroupID: "join",
		Long: `Show what the agent would offer for REQUEST, round by round, and why. Each round assumes that a
competitor matched the agent's last offer. With --dry-run, show what it would offer for typical
requests, from one core for an hour to the whole machine, and what a sold slot would be in the
batch system; with Slurm, also try to create one. With --isolation, run jobs on two free cores
that try to break out, and show what stopped each attempt; end with 1 if one succeeded.`,
		Example: "  ramp resource check --dry-run\n  ramp resource check --isolation\n  ramp resource check job.xml --rounds 5",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case isolated && (dry || len(args) == 1) || !isolated && dry == (len(args) == 1):
				return exit.Fail(exit.Usage, "", "give a REQUEST, --dry-run or --isolation")
			case isolated:
				return isolation(c)
			case rounds < 1 || rounds > protocol.MaxRounds:
				return exit.Fail(exit.Usage, "", "--rounds %d: want 1..%d", rounds, protocol.MaxRounds)
			case dry:
				return cli.AskFleet(c, control.DryRun, struct{}{}, printDryRun)
			}
			b, err := words.ReadInput(c.Context(), c.InOrStdin(), args[0], protocol.MaxDocument)
			if err != nil {
				return err
			}
			if b, _, _, err = order.Document(b, args[0]); err != nil {
				return err
			}
			var lines []message.QuoteLine
			if err := askResource(c, control.Check, control.CheckCall{Document: string(b), Rounds: rounds}, &lines); err != nil {
				return err
			}
			return printQuotes(c, lines, false)
		},
	}
	c.Flags().IntVar(&rounds, "rounds", protocol.DefaultRounds, "rounds of bidding to show")
	c.Flags().BoolVar(&isolated, "isolation", false, "try to break out of jobs, as a hostile buyer would")
	c.Flags().BoolVar(&dry, "dry-run", false, "show offers for typical requests, and what a sold slot would be")
	return c
}

// defaultLines is how many lines a list shows by default.
const defaultLines = 50

func newResourceOffers() *cobra.Command {
	var q control.LastCall
	c := &cobra.Command{
		Use: "offers", Short: "List the last offers and refusals, and why", Args: cobra.NoArgs, GroupID: "sales",
		Long: `List the last offers and refusals with their reasons, newest last. The daemon keeps them in
memory; without a daemon there are none.`,
		Example: "  ramp resource offers --limit 20\n  ramp resource offers --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			var lines []message.QuoteLine
			if err := askResource(c, control.Offers, q, &lines); err != nil {
				return err
			}
			if len(lines) == 0 && !cli.WantsJSON(c) {
				return noOffers(c)
			}
			return printQuotes(c, lines, true)
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", defaultLines, "show only the last `N`; 0: all that are remembered")
	return cli.Watched(c)
}

// noOffers explains an empty list: offers are only in the memory of a daemon.
func noOffers(c *cobra.Command) error {
	path, err := cli.OneOfFleet(c)
	if err != nil {
		return err
	}
	why := "No requests since the daemon started."
	if !control.DaemonListens(filepath.Dir(path)) {
		why = "The daemon does not run, and only it remembers offers. 'ramp resource reservations' shows what was sold."
	}
	fmt.Fprintln(cli.Stdout(c), why)
	return nil
}

// printQuotes prints offers and refusals, and if asked is set, also when and for whom.
func printQuotes(c *cobra.Command, lines []message.QuoteLine, asked bool) error {
	if lines == nil {
		lines = []message.QuoteLine{} // in JSON an empty list, not null
	}
	rows := [][]string{{"asked (" + words.Zone() + ")", "buyer", "round", "unit", "cores", "start (" + words.Zone() + ")", "busy", "answer"}}
	several := slices.ContainsFunc(lines, func(l message.QuoteLine) bool { return l.Unit > 0 })
	for _, l := range lines {
		answer := quoteWords(l)
		if l.Offer != nil {
			answer += ", to beat " + l.Standing.Cents()
		}
		rows = append(rows, []string{
			words.ClockTime(l.At), words.OrDash(l.Buyer.Name()), fmt.Sprint(l.Round), fmt.Sprint(l.Unit + 1), fmt.Sprint(l.Cores), words.ClockTime(l.Slot.Start),
			busyWords(l), answer,
		})
	}
	for i := range rows {
		if !several {
			rows[i] = slices.Delete(rows[i], 3, 4)
		}
		if !asked {
			rows[i] = rows[i][2:]
		}
	}
	return cli.ShowTable(c, lines, rows)
}

func busyWords(l message.QuoteLine) string {
	if l.Capacity == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", l.Busy, l.Capacity)
}

func quoteWords(l message.QuoteLine) string {
	switch {
	case l.Offer != nil:
		return offerWords(l)
	case l.Reason == nil:
		return "-"
	case l.Reason.Code == protocol.CodeStands:
		return "keeps its offer of " + l.Reason.Asks.Cents()
	}
	s := "refuses: " + string(l.Reason.Code)
	if l.Reason.Term != "" {
		s += fmt.Sprintf(" (%s: wants %s, has %s)", l.Reason.Term, l.Reason.Want, l.Reason.Have)
	}
	if l.Reason.Asks > 0 {
		s += ", asks " + l.Reason.Asks.Cents()
	}
	if !l.Reason.Start.IsZero() {
		s += ", earliest start " + words.AtMinute(l.Reason.Start)
	}
	if l.Reason.Note != "" {
		s += ", " + l.Reason.Note
	}
	return s
}

// offerWords describe the price of a unit, and the probability that the queue alone would start
// it by then.
func offerWords(l message.QuoteLine) string {
	s := "offers " + l.Offer.Cost.Cents()
	for _, it := range l.Offer.Items {
		if it.Unit == l.Unit {
			s = fmt.Sprintf("offers %s per core-hour, %s in total", it.Price.Cents(), it.Cost.Cents())
		}
	}
	if _, ok := l.Offer.Queued.Chance(); ok {
		s += ", by the queue alone " + l.Offer.Queued.String()
	}
	return s
}

func newResourceReservations() *cobra.Command {
	var q control.LastCall
	c := &cobra.Command{
		Use: "reservations", Short: "List the reservations in the journal", Args: cobra.NoArgs, GroupID: "sales",
		Long: `List the reservations in the journal: their state, owner, time and cost in credits, and where
contracts have guarantees, what is due and how they were met.`,
		Example: "  ramp resource reservations --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			var lines []message.ReservationLine
			if err := askResource(c, control.Reservations, q, &lines); err != nil {
				return err
			}
			return cli.ShowTable(c, lines, reservationRows(lines, time.Now()))
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "show only the last `N`; 0: all")
	return cli.Watched(c)
}

// standsAs is the state of a reservation for people: over if it was sold and its slot has ended.
func standsAs(l message.ReservationLine, now time.Time) string {
	if l.State == string(reserve.ClaimSold) && !l.Slot.End.After(now) {
		return "over"
	}
	return l.State
}

// reservationRows are reservations as a table. If a contract has a guarantee, two columns show the
// amount due and whether the site met the guarantee.
func reservationRows(lines []message.ReservationLine, now time.Time) [][]string {
	promised := slices.ContainsFunc(lines, func(l message.ReservationLine) bool { return l.Guarantee != nil })
	rows := [][]string{{"reservation", "state", "user", "cores", "start (" + words.Zone() + ")", "end", "cost"}}
	if promised {
		rows[0] = append(rows[0], "due", "guarantee")
	}
	for _, l := range lines {
		row := []string{l.ID, standsAs(l, now), l.User.Name(), fmt.Sprint(l.Slot.Cores), words.ClockTime(l.Slot.Start), words.EndTime(l.Slot.Start, l.Slot.End), l.Cost.Cents()}
		switch {
		case promised && l.Guarantee == nil:
			row = append(row, l.Due.Cents(), "-")
		case promised:
			row = append(row, l.Due.Cents(), order.GuaranteeWords(*l.Guarantee))
		}
		rows = append(rows, row)
	}
	return rows
}

func printDryRun(w io.Writer, a control.DryRunAnswer) {
	rows := [][]string{{"request", "cores", "wall", "within", "busy", "start (" + words.Zone() + ")", "answer"}}
	for _, o := range a.Offers {
		start := "-"
		if o.Line.Offer != nil {
			start = words.ClockTime(o.Line.Slot.Start)
		}
		rows = append(rows, []string{o.Request, fmt.Sprint(o.Cores), hoursWords(o.Wall), hoursWords(o.Within), busyWords(o.Line), start, quoteWords(o.Line)})
	}
	cli.Table(w, rows...)
	fmt.Fprintf(w, "for buyers who pay at most the list price, %s per core-hour\n", a.Price.Cents())
	fmt.Fprintf(w, "a sold slot will be %s\n", a.Hold.What)
	switch {
	case !a.Hold.OK:
		fmt.Fprintf(w, "which the batch system cannot create: %s\n", a.Hold.Why)
	case a.Hold.Why != "":
		fmt.Fprintf(w, "%s\n", a.Hold.Why)
	}
	if a.Sales != message.SalesOpen {
		fmt.Fprintf(w, "sales are %s: %s\n", a.Sales, a.Why)
	}
}

func hoursWords(minutes int) string { return fmt.Sprintf("%d h", minutes/60) }

func NewKeepJob() *cobra.Command {
	return &cobra.Command{
		Use: config.KeepJob + " DIR", Short: "Run the job of a directory (for the local driver)", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return local.Keep(args[0]) },
	}
}

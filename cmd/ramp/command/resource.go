package command

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

func newResource() *cobra.Command {
	c := &cobra.Command{
		Use:   "resource",
		Short: "Sell the time of a batch system",
		Long: `A resource agent sells time on a site's batch system. Its configuration names the
driver: 'slurm', 'pbs', 'local' (cores of this machine), 'command' (a program of your
own) or 'swf' (a workload log as a live machine). 'init' writes one.`,
	}
	c.PersistentFlags().String("dir", "", "the agent's directory (default $RAMP_DIR, or ramp/resource below the data directory)")
	c.PersistentFlags().String("config", "", "configuration file (default: config.yaml in the directory)")
	c.AddCommand(newResourceInit(), newResourceServe(), newResourceCheck(), newResourceOffers(), newResourceReservations(),
		newResourceStatus(), newResourceDrain(), newResourceResume(),
		newBalance(askSeller), newStatement(askSeller), newResourceReceipt(),
		newConfig("resource", fleet))
	return c
}

// resourcePaths are the configuration and the directory that a command is for.
func resourcePaths(c *cobra.Command) (path, dir string, err error) {
	file, err := c.Flags().GetString("config")
	if err != nil {
		return "", "", err
	}
	path, err = configPath(c, file, "resource")
	return path, filepath.Dir(path), err
}

// askResource makes one call to the resource agent.
func askResource(c *cobra.Command, call string, body, v any) error {
	path, err := oneOfFleet(c)
	if err != nil {
		return err
	}
	return askResourceAt(c, path, call, body, v)
}

func newResourceServe() *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use: "serve", Short: "Run the resource agent as a daemon, or all agents below --dir", Args: cobra.NoArgs,
		Long: `Runs the resource agent as a daemon, or all agents below --dir. At its start an
agent asks its banks which contracts name it, and sells nothing until each has
answered: its journal may have been lost, or be an older copy. --trust-journal
sells without asking, if you know that nothing is missing.`,
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := fleet(c)
			switch {
			case err != nil:
				return err
			case len(paths) > 1:
				return serveFleet(c.Context(), paths, trust, stderr(c))
			}
			return serveResource(c.Context(), paths[0], trust, stderr(c))
		},
	}
	c.Flags().BoolVar(&trust, "trust-journal", false, "sell without asking the banks first whether the journal lacks what was sold")
	return c
}

func newResourceCheck() *cobra.Command {
	var rounds int
	var dry bool
	c := &cobra.Command{
		Use: "check [REQUEST]", Short: "Print the offer the agent would make, round by round, and why", Args: cobra.MaximumNArgs(1),
		Long: `Prints the offer that the agent would make to REQUEST, round by round, and why. With
--dry-run it prints what it would offer to typical requests, from one core to the
whole machine, and what a sold slot would be.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case dry == (len(args) == 1):
				return fail(exitUsage, "", "give a REQUEST, or --dry-run")
			case rounds < 1 || rounds > protocol.MaxRounds:
				return fail(exitUsage, "", "--rounds %d: want 1..%d", rounds, protocol.MaxRounds)
			case dry:
				return dryRun(c)
			}
			b, _, _, err := readRequest(c, args[0])
			if err != nil {
				return err
			}
			var lines []message.QuoteLine
			if err := askResource(c, "/v1/check", checkCall{Document: string(b), Rounds: rounds}, &lines); err != nil {
				return err
			}
			return printQuotes(c, lines, false)
		},
	}
	c.Flags().IntVar(&rounds, "rounds", protocol.DefaultRounds, "rounds of bidding to show")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the offers to typical requests, and what a sold slot would be")
	return c
}

// defaultLines is how many lines a list shows unless it is told otherwise.
const defaultLines = 50

func newResourceOffers() *cobra.Command {
	var q lastCall
	c := &cobra.Command{
		Use: "offers", Short: "Print the last offers and refusals, and why", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return fail(exitUsage, "", "--limit %d: want zero or more", q.Limit)
			}
			var lines []message.QuoteLine
			if err := askResource(c, "/v1/offers", q, &lines); err != nil {
				return err
			}
			if len(lines) == 0 && !wantsJSON(c) {
				return noOffers(c)
			}
			return printQuotes(c, lines, true)
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", defaultLines, "the last so many; 0: all that are remembered")
	return c
}

// noOffers says why there are none: they are in the memory of a daemon.
func noOffers(c *cobra.Command) error {
	path, err := oneOfFleet(c)
	if err != nil {
		return err
	}
	said := "nobody has asked since the daemon began"
	if !daemonListens(filepath.Dir(path)) {
		said = "the daemon does not run, and offers are remembered only while it does; 'ramp resource reservations' shows what was sold"
	}
	fmt.Fprintln(stdout(c), said)
	return nil
}

// printQuotes prints offers and refusals; asked also says when and by whom.
func printQuotes(c *cobra.Command, lines []message.QuoteLine, asked bool) error {
	if wantsJSON(c) {
		if lines == nil {
			lines = []message.QuoteLine{}
		}
		return printJSON(stdout(c), lines)
	}
	rows := [][]string{{"asked (UTC)", "buyer", "round", "unit", "cores", "start (UTC)", "busy", "to beat", "answer"}}
	for _, l := range lines {
		busy := "-"
		if l.Capacity > 0 {
			busy = fmt.Sprintf("%d of %d", l.Busy, l.Capacity)
		}
		rows = append(rows, []string{
			secondTime(l.At), orDash(l.Buyer.Name()), fmt.Sprint(l.Round), fmt.Sprint(l.Unit + 1), fmt.Sprint(l.Cores), clockTime(l.Slot.Start),
			busy, l.Standing.String(), quoteWords(l),
		})
	}
	for i := range rows {
		if !asked {
			rows[i] = rows[i][2:]
		}
	}
	table(stdout(c), rows...)
	return nil
}

// quoteWords says what was answered, and why.
func quoteWords(l message.QuoteLine) string {
	switch {
	case l.Offer != nil:
		return offerWords(l)
	case l.Reason == nil:
		return "-"
	}
	s := "refuses: " + string(l.Reason.Code)
	if l.Reason.Term != "" {
		s += fmt.Sprintf(" (%s: wants %s, has %s)", l.Reason.Term, l.Reason.Want, l.Reason.Have)
	}
	if l.Reason.Asks > 0 {
		s += ", asks " + l.Reason.Asks.String()
	}
	if !l.Reason.Start.IsZero() {
		s += ", earliest start " + clockTime(l.Reason.Start)
	}
	if l.Reason.Note != "" {
		s += ", " + l.Reason.Note
	}
	return s
}

// offerWords says what a unit was offered for, and how likely the queue alone would
// start it by then.
func offerWords(l message.QuoteLine) string {
	s := "offers " + l.Offer.Cost.String()
	for _, it := range l.Offer.Items {
		if it.Unit == l.Unit {
			s = fmt.Sprintf("offers %s per core-hour, %s in all", it.Price, it.Cost)
		}
	}
	if _, ok := l.Offer.Queued.Chance(); ok {
		s += ", by the queue alone " + l.Offer.Queued.String()
	}
	return s
}

func newResourceReservations() *cobra.Command {
	var q lastCall
	c := &cobra.Command{
		Use: "reservations", Short: "Print the reservations that the journal has", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return fail(exitUsage, "", "--limit %d: want zero or more", q.Limit)
			}
			var lines []message.ReservationLine
			if err := askResource(c, "/v1/reservations", q, &lines); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), lines)
			}
			table(stdout(c), reservationRows(lines)...)
			return nil
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "the last so many; 0: all")
	return c
}

// reservationRows are reservations for people. Where contracts have promises, they say
// how the site has kept them.
func reservationRows(lines []message.ReservationLine) [][]string {
	promised := slices.ContainsFunc(lines, func(l message.ReservationLine) bool { return l.Guarantee != nil })
	rows := [][]string{{"reservation", "state", "user", "cores", "start (UTC)", "end", "cost"}}
	if promised {
		rows[0] = append(rows[0], "due", "guarantee")
	}
	for _, l := range lines {
		row := []string{l.ID, l.State, l.User.Name(), fmt.Sprint(l.Slot.Cores), clockTime(l.Slot.Start), clockTime(l.Slot.End), l.Cost.String()}
		switch {
		case promised && l.Guarantee == nil:
			row = append(row, l.Due.String(), "-")
		case promised:
			row = append(row, l.Due.String(), guaranteeWords(*l.Guarantee))
		}
		rows = append(rows, row)
	}
	return rows
}

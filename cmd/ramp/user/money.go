package user

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserRunway() *cobra.Command {
	var over time.Duration
	c := &cobra.Command{
		Use: "runway", Short: "Show how long the money lasts at the present rate", Args: cobra.NoArgs, GroupID: "money",
		Long: `Show how long the money lasts if spending goes on as during the last --over: what was paid or
held for jobs, less refunds. Incomes and the decay of an allowance count. For a member of a
bartering group the money that pays for its jobs counts: its own, its group's or both, whoever
in the group spends it. The rate covers at least a day, and starts at the first payment if that
is later. Less than three days is marked LOW; 'ramp user buy' and 'ramp run' then warn.
Ends with 5 if a bank does not answer within 30 s.`,
		Example: "  ramp user runway\n  ramp user runway --over 24h",
		RunE: func(c *cobra.Command, _ []string) error {
			if over < time.Minute || over > 366*24*time.Hour {
				return exit.Fail(exit.Usage, "", "--over %s: want 1m..8784h", over)
			}
			var list []control.RunwayLine
			if err := askUserWith(c, control.Runway, control.RunwayCall{Over: config.Span(over)}, &list); err != nil {
				return err
			}
			cli.WarnNoAccount(c, len(list))
			return cli.ShowTable(c, list, runwayRows(list))
		},
	}
	cli.DurationVar(c.Flags(), &over, "over", control.RunwayOver, "measure the rate over this long, up to now")
	return c
}

// runwayRows are runways as a table, with columns for the income and for the accounts counted if
// any line has them.
func runwayRows(list []control.RunwayLine) [][]string {
	income := slices.ContainsFunc(list, func(l control.RunwayLine) bool { return l.Income > 0 })
	shared := slices.ContainsFunc(list, func(l control.RunwayLine) bool { return l.Group != "" })
	rows := [][]string{{"bank", "currency", "available", "held", "spent", "in", "lasts"}}
	if income {
		rows[0] = append(rows[0], "income a day")
	}
	if shared {
		rows[0] = append(rows[0], "counted")
	}
	for _, l := range list {
		row := []string{l.Bank.Name(), l.Currency, l.Available.Cents(), l.Held.Cents(), l.Spent.Cents(), words.ShortDuration(spanOf(l)), markedWords(l)}
		if income {
			row = append(row, l.Income.Cents())
		}
		if shared {
			row = append(row, countedWords(l))
		}
		rows = append(rows, row)
	}
	return rows
}

func spanOf(l control.RunwayLine) time.Duration { return time.Duration(l.OverS * float64(time.Second)) }

// countedWords say whose money is counted.
func countedWords(l control.RunwayLine) string {
	switch l.Counts {
	case control.CountsBoth:
		return "its own and group:" + l.Group
	case control.CountsGroup:
		return "group:" + l.Group
	}
	return "its own"
}

// markedWords are lastsWords, marked if the money runs out soon.
func markedWords(l control.RunwayLine) string {
	if l.Low {
		return "LOW: " + lastsWords(l)
	}
	return lastsWords(l)
}

// distant is how far off an end has its year.
const distant = 90 * 24 * time.Hour

// lastsWords say how long the money lasts.
func lastsWords(l control.RunwayLine) string {
	switch {
	case l.Spent <= 0:
		return "indefinitely: nothing is being spent"
	case l.LastsS == nil:
		return "indefinitely: the income covers it"
	case l.Ends.IsZero():
		return "for centuries"
	}
	at := words.AtMinute(l.Ends)
	if *l.LastsS > distant.Seconds() {
		at = words.Date(l.Ends) // the year counts, and no minute
	}
	return words.ShortDuration(time.Duration(*l.LastsS*float64(time.Second))) + ", until " + at
}

// warnLow warns after a purchase if the money runs out soon. It stays silent if a bank does not
// answer in time.
func warnLow(c *cobra.Command, agent *control.Client) {
	ctx, cancel := context.WithTimeout(c.Context(), cli.WarnTime)
	defer cancel()
	var list []control.RunwayLine
	if err := control.Runway.Ask(ctx, agent, control.RunwayCall{}, &list); err != nil {
		return
	}
	for _, l := range list {
		if l.Low {
			whose := ""
			if l.Counts != control.CountsOwn {
				whose = " (" + countedWords(l) + ")"
			}
			fmt.Fprintf(cli.Notes(c), "warning: at the rate of the last %s, %s %s at %s%s last %s\n", words.ShortDuration(spanOf(l)), l.Available.Cents(), l.Currency, l.Bank.Name(), whose, lastsWords(l))
		}
	}
}

// askUserWith makes one call for which the user agent asks its banks.
func askUserWith[Q, A any](c *cobra.Command, call control.Endpoint[Q, A], q Q, a *A) error {
	agent, done, err := cli.OpenUser(c)
	if err != nil {
		return err
	}
	defer done()
	defer cli.Awaiting(c, "asking the banks", control.AnswerTime)()
	return call.Ask(c.Context(), agent, q, a)
}

func askBalance(c *cobra.Command, list *[]message.Balance) error {
	return askUserWith(c, control.Balance, struct{}{}, list)
}

func askStatements(c *cobra.Command, q control.StatementCall, list *[]control.BankStatement) error {
	return askUserWith(c, control.Statements, q, list)
}

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/message"
)

func newUserStatement() *cobra.Command {
	var q statementCall
	var from, to string
	c := &cobra.Command{
		Use: "statement", Short: "Ask the banks for the entries of the agent's own accounts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if q.From, q.To, err = parseTimes(from, to); err != nil {
				return err
			}
			if q.Limit < 1 || q.Limit > message.MaxStatement {
				return fail(exitUsage, "", "--limit %d: want 1..%d", q.Limit, message.MaxStatement)
			}
			var list []bankStatement
			if err := askUserWith(c, "/v1/statement", q, &list); err != nil {
				return err
			}
			return printStatements(c, list)
		},
	}
	c.Flags().StringVar(&from, "from", "", "first time, RFC 3339")
	c.Flags().StringVar(&to, "to", "", "time to end before, RFC 3339")
	c.Flags().Uint64Var(&q.After, "after", 0, "only entries behind this number")
	c.Flags().IntVar(&q.Limit, "limit", 100, "at most this many entries of each bank")
	return c
}

func printStatements(c *cobra.Command, list []bankStatement) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), list)
	}
	for _, s := range list {
		fmt.Fprintf(stdout(c), "%s:\n", s.Bank.Name())
		if err := printStatement(c, s.Statement); err != nil {
			return err
		}
	}
	return nil
}

func newUserRunway() *cobra.Command {
	var over time.Duration
	c := &cobra.Command{
		Use: "runway", Short: "Tell how long the money lasts at the present rate", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if over < time.Minute || over > 366*24*time.Hour {
				return fail(exitUsage, "", "--over %s: want 1m..8784h", over)
			}
			var list []runwayLine
			if err := askUserWith(c, "/v1/runway", runwayCall{Over: span(over)}, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"bank", "currency", "available", "held", "spent in " + shortTime(over), "lasts"}}
			for _, l := range list {
				rows = append(rows, []string{l.Bank.Name(), l.Currency, l.Available.String(), l.Held.String(), l.Spent.String(), l.words()})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
	durationVar(c.Flags(), &over, "over", runwayOver, "the time up to now whose rate counts")
	return c
}

// words is how long the money lasts, for people.
func (l runwayLine) words() string {
	if l.LastsS == nil {
		return "for ever: nothing is being spent"
	}
	if l.Ends.IsZero() {
		return "for centuries"
	}
	return shortTime(time.Duration(*l.LastsS*float64(time.Second))) + ", to " + clockTime(l.Ends)
}

// shortTime is a time in its greatest unit.
func shortTime(d time.Duration) string {
	switch days := d / (24 * time.Hour); {
	case days >= 2:
		return fmt.Sprintf("%d days", days)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return d.Round(time.Second).String()
}

// warnTime is how long a command waits for the banks before it ends without a
// warning.
const warnTime = 2 * time.Second

// warnLow tells who has bought that the money will soon be over. A bank that
// cannot be asked just now is asked next time.
func warnLow(c *cobra.Command, agent *caller) {
	ctx, cancel := context.WithTimeout(c.Context(), warnTime)
	defer cancel()
	var list []runwayLine
	if err := agent.call(ctx, "POST", "/v1/runway", runwayCall{}, &list); err != nil {
		return
	}
	for _, l := range list {
		if l.Low {
			fmt.Fprintf(stderr(c), "warning: at the rate of the last %s, %s %s at %s last %s\n", shortTime(runwayOver), l.Available, l.Currency, l.Bank.Name(), l.words())
		}
	}
}

// askUserWith makes one call with a question to the user agent.
func askUserWith(c *cobra.Command, path string, q, v any) error {
	agent, done, err := openUser(c)
	if err != nil {
		return err
	}
	defer done()
	defer awaiting(c, "asking the banks", answerTime)()
	return agent.call(c.Context(), "POST", path, q, v)
}

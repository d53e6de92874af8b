package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

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
			table(stdout(c), runwayRows(list)...)
			return nil
		},
	}
	durationVar(c.Flags(), &over, "over", runwayOver, "the time up to now whose rate counts; from the first payment, if that is later, but a day at least")
	return c
}

// runwayRows are runways for people. Where an account has an income, or others' money
// counts, all of them say so.
func runwayRows(list []runwayLine) [][]string {
	income := slices.ContainsFunc(list, func(l runwayLine) bool { return l.Income > 0 })
	shared := slices.ContainsFunc(list, func(l runwayLine) bool { return l.Group != "" })
	rows := [][]string{{"bank", "currency", "available", "held", "spent", "in", "lasts"}}
	if income {
		rows[0] = append(rows[0], "income a day")
	}
	if shared {
		rows[0] = append(rows[0], "counted")
	}
	for _, l := range list {
		row := []string{l.Bank.Name(), l.Currency, l.Available.String(), l.Held.String(), l.Spent.String(), shortTime(l.over()), l.marked()}
		if income {
			row = append(row, l.Income.String())
		}
		if shared {
			row = append(row, l.counted())
		}
		rows = append(rows, row)
	}
	return rows
}

// over is the time that the rate is of.
func (l runwayLine) over() time.Duration { return time.Duration(l.OverS * float64(time.Second)) }

// counted is whose money is counted, for people.
func (l runwayLine) counted() string {
	switch l.Counts {
	case countsBoth:
		return "its own and group:" + l.Group
	case countsGroup:
		return "group:" + l.Group
	}
	return "its own"
}

// marked is how long the money lasts, with a mark if that is not long.
func (l runwayLine) marked() string {
	if l.Low {
		return "LOW: " + l.words()
	}
	return l.words()
}

// words is how long the money lasts, for people.
func (l runwayLine) words() string {
	switch {
	case l.Spent <= 0:
		return "for ever: nothing is being spent"
	case l.LastsS == nil:
		return "for ever: the income covers it"
	case l.Ends.IsZero():
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
			whose := ""
			if l.Counts != countsOwn {
				whose = " (" + l.counted() + ")"
			}
			fmt.Fprintf(stderr(c), "warning: at the rate of the last %s, %s %s at %s%s last %s\n", shortTime(l.over()), l.Available, l.Currency, l.Bank.Name(), whose, l.words())
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

package user

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user/sweep/chart"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserSweeps() *cobra.Command {
	c := &cobra.Command{
		Use: "sweeps", Short: "List, inspect and change sweeps", GroupID: "run", Args: cobra.NoArgs,
		Long: "List the agent's sweeps, the oldest first.", Example: "  ramp user sweeps",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []message.Sweep
			if err := cli.Ask(c, cli.OpenUserServing, control.Sweeps, control.None{}, &list); err != nil {
				return err
			}
			rows := [][]string{{"id", "created (" + words.Zone() + ")", "state", "tasks", "done", "failed", "spent"}}
			for _, v := range list {
				rows = append(rows, []string{v.ID, words.ClockTime(v.Created), v.State, strconv.Itoa(v.Tasks.Total), strconv.Itoa(v.Tasks.Done), strconv.Itoa(v.Tasks.Failed), v.Spent.Cents()})
			}
			return cli.ShowTable(c, list, rows)
		},
	}
	cli.Watched(c)
	cli.Add(c, newSweepsShow(), newSweepsTasks(), newSweepsLedger(), newSweepsSet(),
		sweepVerb(message.SweepPause, "Pause a sweep: start no more tasks", "Let running tasks finish, and start no others until 'ramp user sweeps resume'."),
		sweepVerb(message.SweepResume, "Resume a paused sweep", "Resume a sweep that 'ramp user sweeps pause' stopped."),
		sweepVerb(message.SweepKill, "Kill a sweep and its running tasks", "Kill the running tasks of a sweep, and start no others. Finished tasks keep their results."),
		sweepVerb(message.SweepRetry, "Run the failed tasks of a sweep again", "Run again the tasks that failed permanently, with their inputs as they are now, such as a\nrepaired program. Earlier failures no longer count."))
	return c
}

// aboutSweep asks one thing about the sweep that a command names.
func aboutSweep[Q, A any](c *cobra.Command, word string, call control.Endpoint[Q, A], q func(id string) Q, a *A) error {
	agent, done, err := cli.OpenUserServing(c)
	if err != nil {
		return err
	}
	defer done()
	var list []message.Sweep
	if word == "" {
		return exit.Fail(exit.Usage, "'ramp user sweeps' lists them", `ID "": want the first letters of a sweep's`)
	}
	if err := control.Sweeps.Ask(c.Context(), agent, control.None{}, &list); err != nil {
		return err
	}
	var found []string
	for _, v := range list {
		if strings.HasPrefix(v.ID, word) {
			found = append(found, v.ID)
		}
	}
	switch slices.Sort(found); {
	case len(found) == 0:
		return exit.Fail(exit.Usage, "'ramp user sweeps' lists them", "no sweep %q", word)
	case len(found) == 1 || found[0] == word: // the shortest is first
		return call.Ask(c.Context(), agent, q(found[0]), a)
	}
	return exit.Fail(exit.Usage, "", "%q begins the IDs of several sweeps: %s", word, strings.Join(found, ", "))
}

func byID(id string) control.IDCall { return control.IDCall{ID: id} }

func newSweepsShow() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "show ID", Short: "Show the state of a sweep", Args: cobra.ExactArgs(1),
		Long: `Show tasks, sites with their measured rates, and money against the budget. --plot draws
which task ran where and when, the money spent against the budget, and the tasks done by the
deadline.`,
		Example: "  ramp user sweeps show wing --watch\n  ramp user sweeps show wing --plot wing.svg",
		RunE: func(c *cobra.Command, args []string) error {
			format, err := pictureFormat(file)
			if err != nil {
				return err
			}
			var v message.Sweep
			if err := aboutSweep(c, args[0], control.SweepShow, byID, &v); err != nil {
				return err
			}
			if file != "" {
				if err := plotSweep(c, v, file, format); err != nil {
					return err
				}
			}
			if err := showSweep(c, v); err != nil || v.State != "short" {
				return err
			}
			return sweepCode(v)
		},
	}
	c.Flags().StringVar(&file, "plot", "", "write a picture to `FILE`, which ends with .svg or .png")
	return cli.Watched(c)
}

// pictureFormat is how a picture is written to a file: by its suffix.
func pictureFormat(file string) (func(chart.Sweep, io.Writer) error, error) {
	switch suffix := filepath.Ext(file); {
	case file == "":
		return nil, nil
	case suffix == ".svg":
		return chart.Sweep.SVG, nil
	case suffix == ".png":
		return chart.Sweep.PNG, nil
	}
	return nil, exit.Fail(exit.Usage, "", "--plot %q: want a name that ends with .svg or .png", file)
}

func plotSweep(c *cobra.Command, v message.Sweep, file string, format func(chart.Sweep, io.Writer) error) error {
	s := chart.Sweep{Sweep: v, Now: time.Now()}
	if err := cli.Ask(c, cli.OpenUserServing, control.SweepTasks, byID(v.ID), &s.Tasks); err != nil {
		return err
	}
	if err := cli.Ask(c, cli.OpenUserServing, control.SweepLedger, byID(v.ID), &s.Ledger); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := format(s, &b); err != nil {
		return err
	}
	return config.ReplaceFile(file, b.Bytes(), 0o644)
}

func newSweepsTasks() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "tasks ID", Short: "List the tasks of a sweep", Args: cobra.ExactArgs(1),
		Long: `List every task: where it ran, how often, how it ended and what it cost. --json has every
attempt.`,
		Example: "  ramp user sweeps tasks wing",
		RunE: func(c *cobra.Command, args []string) error {
			var list []message.SweepTask
			if err := aboutSweep(c, args[0], control.SweepTasks, byID, &list); err != nil {
				return err
			}
			rows := [][]string{{"task", "state", "exit", "attempts", "resource", "cost", "why"}}
			for _, t := range list {
				code, site, why := "-", "-", ""
				if n := len(t.Attempts); n > 0 {
					site, why = t.Attempts[n-1].Resource, t.Attempts[n-1].Why
				}
				if t.Exit != nil {
					code = strconv.Itoa(*t.Exit)
				}
				rows = append(rows, []string{strconv.Itoa(t.Task), t.State, code, strconv.Itoa(len(t.Attempts)), site, cents(t.Cost), why})
			}
			return cli.ShowTable(c, list, rows)
		},
	})
}

func newSweepsLedger() *cobra.Command {
	return &cobra.Command{
		Use: "ledger ID", Short: "List what a sweep paid, and for which contract", Args: cobra.ExactArgs(1),
		Long: `List every lease of a sweep with its contract and what was held, paid and refunded. Paid less
refunded sums to what the sweep spent, and to the bank's statement. 'ramp user show' takes a
contract.`,
		Example: "  ramp user sweeps ledger wing",
		RunE: func(c *cobra.Command, args []string) error {
			var list []message.SweepEntry
			if err := aboutSweep(c, args[0], control.SweepLedger, byID, &list); err != nil {
				return err
			}
			rows := [][]string{{"lease", "contract", "resource", "start (" + words.Zone() + ")", "held", "paid", "refund", "tasks"}}
			for _, e := range list {
				rows = append(rows, []string{
					e.Lease[strings.LastIndexByte(e.Lease, '.')+1:], fmt.Sprintf("%.8s", e.Contract), e.Resource, words.ClockTime(e.Slot.Start),
					cents(e.Held), cents(e.Paid), cents(e.Refunded), strconv.Itoa(len(e.Tasks)),
				})
			}
			return cli.ShowTable(c, list, cli.WithoutZeros(rows))
		},
	}
}

func newSweepsSet() *cobra.Command {
	var deadline, budget, strategy string
	c := &cobra.Command{
		Use: "set ID", Short: "Change deadline, budget or strategy of a sweep", Args: cobra.ExactArgs(1),
		Long: `Change the terms of a sweep while it runs, or after it stopped because time or money ran out.
What is bought stays bought.`,
		Example: "  ramp user sweeps set wing --budget 80 --deadline 12h",
		RunE: func(c *cobra.Command, args []string) error {
			q := message.SweepSet{Strategy: strategy}
			now := time.Now()
			if deadline == "" && budget == "" && strategy == "" {
				return exit.Fail(exit.Usage, "", "nothing to change: want --deadline, --budget or --strategy")
			}
			if deadline != "" {
				p := plan.Plan{}
				err := p.SetDeadline(deadline)
				if err != nil {
					return exit.Fail(exit.Usage, "", "--deadline %w", err)
				}
				if q.Deadline, err = p.Due(now); err != nil {
					return exit.WithCode(exit.Usage, err)
				}
			}
			if budget != "" {
				var err error
				if q.Budget, err = cli.AmountOf("--budget", budget); err != nil {
					return err
				}
			}
			return changeSweep(c, args[0], q)
		},
	}
	f := c.Flags()
	f.StringVar(&deadline, "deadline", "", "end within a time from now (6h) or by a `TIME`")
	f.StringVar(&budget, "budget", "", "spend at most `CREDITS` in total")
	f.StringVar(&strategy, "strategy", "", "`NAME` of the strategy")
	cli.Choices(c, "strategy", "cost-time", "cost", "time", "conservative-time", "none")
	return c
}

func changeSweep(c *cobra.Command, word string, q message.SweepSet) error {
	var v message.Sweep
	err := aboutSweep(c, word, control.SweepSet, func(id string) message.SweepSet { q.ID = id; return q }, &v)
	if err != nil {
		return err
	}
	return showSweep(c, v)
}

func sweepVerb(verb message.SweepVerb, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1), Example: "  ramp user sweeps " + string(verb) + " wing",
		RunE: func(c *cobra.Command, args []string) error {
			return changeSweep(c, args[0], message.SweepSet{Verb: verb})
		},
	}
}

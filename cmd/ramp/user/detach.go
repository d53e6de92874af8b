package user

import (
	"errors"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// errEnough ends following a run before it is over.
var errEnough = errors.New("followed far enough")

// submitted prints a job once it needs this command no more: an agent in this process has to
// bring its inputs first.
func (w *watching) submitted() error {
	if !w.agent.Daemon {
		if err := w.states(w.c.Context(), w.atSites); err != nil && !errors.Is(err, errEnough) {
			return w.stopped(err)
		}
	}
	return cli.ShowLine(w.c, map[string]string{"id": w.id, "name": w.name}, "%s  %s", w.short, w.name)
}

func newUserWait() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "wait ID… | --all", Short: "Wait until jobs end", GroupID: "run", ValidArgsFunction: cli.RunID,
		Long: `Wait until the programs of purchases end, and list them. Ends with 0 if all ended well, else
with the highest of their exit codes, which are those of 'ramp run'. --all waits for all jobs
whose result was not shown yet. An interrupt leaves the jobs running.`,
		Example: "  ramp wait p8a3e735 render\n  ramp wait --all && ramp fetch --all -o results",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return exit.Fail(exit.Usage, "'ramp jobs' lists them", "give the IDs or names of jobs, or --all")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := cli.OpenUserServing(c)
			if err != nil {
				return err
			}
			defer done()
			runs, err := runsOf(c, agent, args)
			if err != nil {
				return err
			}
			return waitFor(c, agent, runs)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all jobs whose result was not shown yet")
	return cli.EndsWithProgram(c)
}

// runsOf are the runs that a command names, or all whose result was not shown.
func runsOf(c *cobra.Command, agent *control.Client, words []string) ([]message.Run, error) {
	runs := []message.Run{} // in JSON an empty list, not null
	if len(words) == 0 {
		var list []message.Run
		err := control.Runs.Ask(c.Context(), agent, control.LastCall{}, &list)
		for _, r := range list {
			if !r.Collected {
				runs = append(runs, r)
			}
		}
		return runs, err
	}
	for _, word := range words {
		id, err := wholeRun(c, agent, word)
		if err != nil {
			return nil, err
		}
		var r message.Run
		if err := control.Run.Ask(c.Context(), agent, control.RunCall{ID: id}, &r); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// waitFor follows runs until they are over, lists them, and ends with the worst of their codes.
func waitFor(c *cobra.Command, agent *control.Client, runs []message.Run) error {
	worst, ids := exit.Done, make([]string, len(runs))
	for i := range runs {
		w := newWatching(c, agent, runs[i].ID, runs[i].Name)
		if err := w.states(c.Context(), nil); err != nil {
			return w.stopped(err)
		}
		runs[i], ids[i], worst = w.run, w.id, max(worst, w.run.Exit)
	}
	if err := cli.ShowTable(c, runs, runRows(runs, cli.ShortIDs(agent, ids...))); err != nil {
		return err
	}
	for _, id := range ids {
		if err := control.RunCollected.Ask(c.Context(), agent, control.RunCall{ID: id}, nil); err != nil {
			return err
		}
	}
	return exit.OfProgram(worst)
}

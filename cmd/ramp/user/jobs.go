package user

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserJobs() *cobra.Command {
	var q control.LastCall
	c := &cobra.Command{
		Use: "jobs", Short: "List the programs that run or ran in bought slots", Args: cobra.NoArgs, GroupID: "run",
		Long: `List the programs that run or ran in bought slots, oldest first, as last reported by their
sites. It does not ask the sites; 'ramp user status ID' does.`,
		Example: "  ramp jobs --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			return listed(c, control.Runs, q, func(r message.Run) string { return r.ID }, runRows)
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "show only the last `N`; 0: all")
	return cli.Watched(c)
}

func runRows(list []message.Run, short []string) [][]string {
	rows := [][]string{{"id", "name", "when (" + words.Zone() + ")", "units", "state", "exit"}}
	for i, r := range list {
		exit := "-"
		if r.Over {
			exit = fmt.Sprint(r.Exit)
		}
		rows = append(rows, []string{short[i], r.Name, words.ClockTime(r.Created), fmt.Sprint(len(r.Units)), r.State, exit})
	}
	return rows
}

// controlled makes a command that acts on a run and then shows it.
func controlled(verb message.LaunchVerb, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1), GroupID: "run",
		Example: "  ramp user " + string(verb) + " p8a3e735", ValidArgsFunction: cli.RunID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUser, wholeRun, args[0], func(agent *control.Client, id string) error {
				defer cli.Awaiting(c, "asking the sites", control.ControlTime)()
				var run message.Run
				if err := control.RunControl.Ask(c.Context(), agent, control.RunCall{ID: id, Verb: verb}, &run); err != nil {
					return err
				}
				return printRun(c, agent, run)
			})
		},
	}
}

func newUserSuspend() *cobra.Command {
	return controlled(message.VerbSuspend, "Suspend the program of a purchase", `Suspend the program of a purchase in all its units until 'ramp user resume'. The slot, and what
it costs, continue. Ends with 1 if a site's batch system cannot suspend, with 3 if the program
is not running, and with 5 if a site has not answered within 10 s.`)
}

func newUserResume() *cobra.Command {
	return controlled(message.VerbResume, "Resume the program of a purchase", `Resume the suspended program of a purchase in all its units. Ends with 3 if the program has not
started or has ended, and with 5 if a site has not answered within 10 s.`)
}

func newUserKill() *cobra.Command {
	return controlled(message.VerbKill, "Kill the program of a purchase", `Kill the program of a purchase in all its units. The slot stays paid; of a metered purchase the
usage is, and at least the least payment. Ends with 3 if the program has ended already, and with
5 if a site has not answered within 10 s; the agent keeps trying.`)
}

func newUserStatus() *cobra.Command {
	return controlled(message.VerbStatus, "Ask the sites about the program of a purchase", `Ask the sites about the program of a purchase: its state, the CPU time it used and the files it
left, or how it ended. Ends with 5 if a site has not answered within 10 s.`)
}

func printRun(c *cobra.Command, agent *control.Client, run message.Run) error {
	rows := [][]string{{"unit", "resource", "cores", "start (" + words.Zone() + ")", "end", "state", "cpu", "files"}}
	for _, u := range run.Units {
		end := words.EndStamp(u.Slot.Start, u.Slot.End)
		if run.Federation { // it may be suspended for as long as it takes
			end = "-"
		}
		rows = append(rows, []string{
			fmt.Sprint(u.Unit + 1), u.Resource, fmt.Sprint(u.Slot.Cores), words.Timestamp(u.Slot.Start), end,
			node.UnitWords(u), u.Status.Job.Usage.CPU.Round(1e6).String(), fmt.Sprint(len(u.Status.Outputs)),
		})
	}
	return cli.Show(c, run, func(w io.Writer) {
		fmt.Fprintf(w, "%s (%s): %s\n", run.Name, cli.ShortID(agent, run.ID), run.State)
		cli.Table(w, rows...)
		if run.Fault != "" {
			fmt.Fprintln(w, "  why:", run.Fault)
		}
	})
}

func newUserLogs() *cobra.Command {
	var follow bool
	var unit int
	c := &cobra.Command{
		Use: "logs ID", Short: "Print the output of a purchase's program", Args: cobra.ExactArgs(1), GroupID: "run",
		Long: `Print what the program of a purchase has printed so far: its stdout to stdout, its stderr to
stderr. With --follow, stay until the program ends; an interrupt leaves it running. If the
program has not started, the command says when it will. Ends with 3 if it never ran, and with 5
if its site does not answer.`,
		Example: "  ramp logs p23e5 --follow", ValidArgsFunction: cli.RunID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUserServing, wholeRun, args[0], func(agent *control.Client, id string) error {
				w := newWatching(c, agent, id, "")
				w.json = cli.WantsJSON(c)
				return w.logs(unit, follow)
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the program ends")
	cli.UnitVar(c.Flags(), &unit, "only unit `N`, counted from 1; required if there are several")
	return c
}

func (w *watching) logs(unit int, follow bool) error {
	if err := control.Run.Ask(w.c.Context(), w.agent, control.RunCall{ID: w.id}, &w.run); err != nil {
		return err
	}
	if unit == 0 && len(w.run.Units) > 1 {
		return exit.Fail(exit.Usage, "choose one with --unit N, counted from 1", "%s has %d units", w.short, len(w.run.Units))
	}
	w.sayWaiting(unit)
	if !follow {
		w.waits = cli.Awaiting(w.c, "waiting for the site to answer", node.FilesTime)
		defer w.answered()
	}
	return w.stopped(w.print(w.c.Context(), unit, "", follow))
}

func newUserFetch() *cobra.Command {
	var out string
	var unit int
	var all bool
	c := &cobra.Command{
		Use: "fetch {ID | --all} --out DIR", Short: "Fetch the files that a purchase's program left", GroupID: "run",
		Long: `Fetch the files that the program of a purchase left; with several units, those of each go to a
directory of their own (unit-1, unit-2, ...). --all fetches the files of all programs that have
ended, as far as sites still keep them, each job's to a directory of its own (NAME-ID). Sites
keep files for a day unless they say otherwise. Files that exist already are skipped, so the
same command continues an interrupted fetch. Ends with 3 if the program still runs or its files
are gone, and with 5 if a site does not answer.`,
		Example: "  ramp fetch p8a3e735 -o results\n  ramp fetch --all -o results", ValidArgsFunction: cli.RunID,
		Args: func(c *cobra.Command, args []string) error {
			if all {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := cli.OneOf(c, "all", "unit"); err != nil {
				return err
			}
			if all {
				return fetchAll(c, out)
			}
			return withID(c, cli.OpenUser, wholeRun, args[0], func(agent *control.Client, id string) error {
				f, err := fetched(c, agent, id, out, unit)
				if err != nil {
					return err
				}
				var first message.Run
				if at := retried.FindStringIndex(id); at != nil && control.Run.Ask(c.Context(), agent, control.RunCall{ID: id[:at[0]]}, &first) == nil && first.Program.Array {
					fmt.Fprintf(cli.Notes(c), "these are the indexes that were tried again; 'ramp fetch %.8s --out DIR' gets those of the first attempt\n", first.Contract)
				}
				return cli.Show(c, f, f.print)
			})
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "write to `DIR`, created if missing")
	c.Flags().BoolVar(&all, "all", false, "the files of all programs that have ended")
	cli.UnitVar(c.Flags(), &unit, "only unit `N`, counted from 1 (default: all)")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

// retried is how the IDs end of what --retry bought.
var retried = regexp.MustCompile(`\.retry\d+(\.bid\d+)?$`)

// fetchAll fetches what all runs that are over have left and the sites still keep.
func fetchAll(c *cobra.Command, out string) error {
	agent, done, err := cli.OpenUser(c)
	if err != nil {
		return err
	}
	defer done()
	var list []message.Run
	if err := control.Runs.Ask(c.Context(), agent, control.LastCall{}, &list); err != nil {
		return err
	}
	all := []filesOf{}
	for _, r := range node.Fetchable(list, time.Now()) {
		f, err := fetched(c, agent, r.ID, filepath.Join(out, words.OutName(r.Name, cli.ShortID(agent, r.ID))), 0)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	return cli.Show(c, all, func(w io.Writer) {
		for _, f := range all {
			f.print(w)
		}
	})
}

// filesOf are the files that were fetched from a run, in JSON; the names are fixed.
type filesOf struct {
	ID    string   `json:"id"`
	Files []string `json:"files"`
}

func (f filesOf) print(w io.Writer) {
	for _, name := range f.Files {
		fmt.Fprintln(w, name)
	}
}

func fetched(c *cobra.Command, agent *control.Client, id, out string, unit int) (filesOf, error) {
	f := filesOf{id, []string{}}
	dir, err := filepath.Abs(out)
	if err != nil {
		return f, err
	}
	defer cli.Awaiting(c, "waiting for the first file from the site", node.FilesTime)()
	var run message.Run
	if err := control.RunFetch.Ask(c.Context(), agent, control.RunCall{ID: id, Unit: unit, Dir: dir}, &run); err != nil {
		return f, err
	}
	for _, u := range run.Units {
		if unit > 0 && u.Unit != unit-1 {
			continue
		}
		for _, o := range run.Program.Wanted(u) {
			f.Files = append(f.Files, filepath.Join(node.OutDir(out, run, u.Unit), filepath.FromSlash(o.Path)))
		}
	}
	return f, nil
}

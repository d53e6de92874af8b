package user

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// prefixed writes whole lines with a prefix; with an empty prefix it just passes the data on.
type prefixed struct {
	w      io.Writer
	mu     *sync.Mutex
	prefix string
	rest   []byte
}

// maxLogLine bounds a line that is buffered until it ends.
const maxLogLine = 64 << 10

// Write writes the complete lines.
func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prefix == "" {
		return p.w.Write(b)
	}
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) < maxLogLine {
			return len(b), nil
		}
		if i < 0 {
			i = len(p.rest) - 1
		}
		if _, err := fmt.Fprintf(p.w, "%s%s\n", p.prefix, bytes.TrimSuffix(p.rest[:i+1], []byte("\n"))); err != nil {
			return 0, err
		}
		p.rest = p.rest[i+1:]
	}
}

// end writes a last line without a newline.
func (p *prefixed) end() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n")) // an error means that the reader has gone
	}
}

func newUserJobs() *cobra.Command {
	var q control.LastCall
	c := &cobra.Command{
		Use: "jobs", Short: "List the programs that run or ran in bought slots", Args: cobra.NoArgs, GroupID: "run",
		Long: `List the programs that run or ran in bought slots, oldest first, as last reported by their
sites. It does not ask the sites; 'ramp user status ID' does.`,
		Example: "  ramp user jobs --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return exit.Fail(exit.Usage, "", "--limit %d: want zero or more", q.Limit)
			}
			var list []message.Run
			if err := cli.Ask(c, cli.OpenUserRecords, control.Runs, q, &list); err != nil {
				return err
			}
			rows := [][]string{{"id", "request", "when (UTC)", "units", "state", "exit"}}
			for _, r := range list {
				exit := "-"
				if r.Over {
					exit = fmt.Sprint(r.Exit)
				}
				rows = append(rows, []string{r.ID, r.Name, words.ClockTime(r.Created), fmt.Sprint(len(r.Units)), r.State, exit})
			}
			return cli.ShowTable(c, list, rows)
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "show only the last `N`; 0: all")
	return cli.Watched(c)
}

// controlled makes a command that acts on a run and then shows it.
func controlled(verb message.LaunchVerb, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1), GroupID: "run",
		Example: "  ramp user " + string(verb) + " p23e5", ValidArgsFunction: cli.RunID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUser, wholeRun, args[0], func(agent *control.Client, id string) error {
				defer cli.Awaiting(c, "asking the sites", control.ControlTime)()
				var run message.Run
				if err := control.RunControl.Ask(c.Context(), agent, control.RunCall{ID: id, Verb: verb}, &run); err != nil {
					return err
				}
				return printRun(c, run)
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

// printRun prints a run.
func printRun(c *cobra.Command, run message.Run) error {
	rows := [][]string{{"unit", "resource", "cores", "start (UTC)", "end", "state", "cpu", "files"}}
	for _, u := range run.Units {
		rows = append(rows, []string{
			fmt.Sprint(u.Unit + 1), u.Resource, fmt.Sprint(u.Slot.Cores), words.Timestamp(u.Slot.Start), words.Timestamp(u.Slot.End),
			node.UnitWords(u), u.Status.Job.Usage.CPU.Round(1e6).String(), fmt.Sprint(len(u.Status.Outputs)),
		})
	}
	return cli.Show(c, run, func(w io.Writer) {
		fmt.Fprintf(w, "%s (%s): %s\n", run.Name, run.ID, run.State)
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
		Example: "  ramp user logs p23e5 --follow", ValidArgsFunction: cli.RunID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUserServing, wholeRun, args[0], func(agent *control.Client, id string) error {
				w := &watching{c: c, agent: agent, id: id, json: cli.WantsJSON(c)}
				return w.logs(unit, follow)
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the program ends")
	cli.UnitVar(c.Flags(), &unit, "only unit `N`, counted from 1; required if there are several")
	return c
}

// logs prints what one unit of a run has printed.
func (w *watching) logs(unit int, follow bool) error {
	if err := control.Run.Ask(w.c.Context(), w.agent, control.RunCall{ID: w.id}, &w.run); err != nil {
		return err
	}
	if unit == 0 && len(w.run.Units) > 1 {
		return exit.Fail(exit.Usage, "choose one with --unit N, counted from 1", "%s has %d units", w.id, len(w.run.Units))
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
	c := &cobra.Command{
		Use: "fetch ID --out DIR", Short: "Fetch the files that a purchase's program left", Args: cobra.ExactArgs(1), GroupID: "run",
		Long: `Fetch the files that the program of a purchase left; with several units, those of each go to a
directory of their own (unit-1, unit-2, ...). Sites keep files for a day unless they say
otherwise. Files that exist already are skipped, so the same command continues an interrupted
fetch. Ends with 3 if the program still runs or its files are gone, and with 5 if a site does
not answer.`,
		Example: "  ramp user fetch p23e5 --out results", ValidArgsFunction: cli.RunID,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := filepath.Abs(out)
			if err != nil {
				return err
			}
			return withID(c, cli.OpenUser, wholeRun, args[0], func(agent *control.Client, id string) error {
				defer cli.Awaiting(c, "waiting for the first file from the site", node.FilesTime)()
				var run message.Run
				if err := control.RunFetch.Ask(c.Context(), agent, control.RunCall{ID: id, Unit: unit, Dir: dir}, &run); err != nil {
					return err
				}
				return printFetched(c, run, unit, out)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `DIR`, created if missing")
	cli.UnitVar(c.Flags(), &unit, "only unit `N`, counted from 1 (default: all)")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

// printFetched lists the files that were fetched.
func printFetched(c *cobra.Command, run message.Run, unit int, out string) error {
	files := []string{}
	for _, u := range run.Units {
		if unit > 0 && u.Unit != unit-1 {
			continue
		}
		for _, f := range u.Status.Outputs {
			files = append(files, filepath.Join(node.OutDir(out, len(run.Units), u.Unit), filepath.FromSlash(f.Path)))
		}
	}
	return cli.Show(c, map[string]any{"id": run.ID, "files": files}, func(w io.Writer) {
		for _, f := range files {
			fmt.Fprintln(w, f)
		}
	})
}

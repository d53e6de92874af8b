package command

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// prefixed writes whole lines with a prefix; without one, what comes as it comes.
type prefixed struct {
	w      io.Writer
	mu     *sync.Mutex
	prefix string
	rest   []byte
}

// maxLogLine bounds a line that is kept until its end comes.
const maxLogLine = 64 << 10

// Write writes the lines that are whole.
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

// end writes a last line that has no end.
func (p *prefixed) end() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n")) // whoever read it has gone
	}
}

// unitWords say how a unit stands.
func unitWords(u message.RunUnit) string {
	s := u.Status
	words := user.StateOf(u)
	switch {
	case s.Stage == message.StageFailed:
		return "it did not run: " + s.Why
	case u.Lost:
		return u.Resource + " has lost its slot; another is being bought"
	case s.Stage == message.StageAsked:
		return "asking " + u.Resource
	case s.Stage == message.StageStaging && s.Missing == 0:
		return "being prepared on " + u.Resource
	case s.Stage == message.StageStaging:
		return fmt.Sprintf("bringing inputs to %s, %d missing", u.Resource, s.Missing)
	case s.Stage == message.StageReady:
		return fmt.Sprintf("on %s, begins at %s UTC", u.Resource, secondTime(u.Slot.Start))
	case s.Job.State == protocol.JobExited:
		words = fmt.Sprintf("exited with %d", s.Job.Exit)
	case s.Job.State == protocol.JobExpired:
		words = "ended with its slot"
	}
	if s.Job.State.Over() {
		words += fmt.Sprintf(" after %s", s.Job.Usage.Wall.Round(1e6))
	}
	if s.Job.Note != "" {
		words += " (" + s.Job.Note + ")"
	}
	return words
}

func newUserJobs() *cobra.Command {
	var q lastCall
	c := &cobra.Command{
		Use: "jobs", Short: "List the programs that run, or ran, in what was bought", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return fail(exitUsage, "", "--limit %d: want zero or more", q.Limit)
			}
			agent, done, err := openUserRecords(c)
			if err != nil {
				return err
			}
			defer done()
			var list []message.Run
			if err := agent.call(c.Context(), "POST", "/v1/runs", q, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"id", "request", "when (UTC)", "units", "state", "exit"}}
			for _, r := range list {
				exit := "-"
				if r.Over {
					exit = fmt.Sprint(r.Exit)
				}
				rows = append(rows, []string{r.ID, r.Name, clockTime(r.Created), fmt.Sprint(len(r.Units)), r.State, exit})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "the last so many; 0: all")
	return c
}

// controlled makes a command that does something to a run, and shows how it stands.
func controlled(verb message.LaunchVerb, short string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUser(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholeRun(c, agent, args[0])
			if err != nil {
				return err
			}
			defer awaiting(c, "asking the sites", controlTime)()
			var run message.Run
			if err := agent.call(c.Context(), "POST", "/v1/run/control", runCall{ID: id, Verb: verb}, &run); err != nil {
				return err
			}
			return printRun(c, run)
		},
	}
}

func newUserSuspend() *cobra.Command {
	return controlled(message.VerbSuspend, "Suspend the program of a purchase")
}

func newUserResume() *cobra.Command {
	return controlled(message.VerbResume, "Let the suspended program of a purchase go on")
}

func newUserKill() *cobra.Command {
	return controlled(message.VerbKill, "End the program of a purchase")
}

func newUserStatus() *cobra.Command {
	return controlled(message.VerbStatus, "Ask the sites how the program of a purchase stands")
}

// printRun shows a run.
func printRun(c *cobra.Command, run message.Run) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), run)
	}
	fmt.Fprintf(stdout(c), "%s (%s): %s\n", run.Name, run.ID, run.State)
	rows := [][]string{{"unit", "resource", "cores", "start (UTC)", "end", "state", "cpu", "files"}}
	for _, u := range run.Units {
		rows = append(rows, []string{
			fmt.Sprint(u.Unit + 1), u.Resource, fmt.Sprint(u.Slot.Cores), secondTime(u.Slot.Start), secondTime(u.Slot.End),
			unitWords(u), u.Status.Job.Usage.CPU.Round(1e6).String(), fmt.Sprint(len(u.Status.Outputs)),
		})
	}
	table(stdout(c), rows...)
	if run.Fault != "" {
		fmt.Fprintln(stdout(c), "  why:", run.Fault)
	}
	return nil
}

func newUserLogs() *cobra.Command {
	var follow bool
	var unit int
	c := &cobra.Command{
		Use: "logs ID", Short: "Print what the program of a purchase has printed", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUserServing(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholeRun(c, agent, args[0])
			if err != nil {
				return err
			}
			w := &watching{c: c, agent: agent, id: id, json: wantsJSON(c)}
			if err := agent.call(c.Context(), "POST", "/v1/run", runCall{ID: w.id}, &w.run); err != nil {
				return err
			}
			if unit == 0 && len(w.run.Units) > 1 {
				return fail(exitUsage, "--unit N, from 1", "%s has %d units", w.id, len(w.run.Units))
			}
			w.tellWaiting(unit)
			if !follow {
				w.waits = awaiting(c, "waiting for the site to answer", filesTime)
				defer func() { w.answered() }()
			}
			return w.stopped(w.print(c.Context(), unit, "", follow))
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "stay until it is over")
	unitVar(c.Flags(), &unit, "only this unit, from 1 (default: the only one)")
	return c
}

func newUserFetch() *cobra.Command {
	var out string
	var unit int
	c := &cobra.Command{
		Use: "fetch ID --out DIR", Short: "Fetch what the program of a purchase has left", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := filepath.Abs(out)
			if err != nil {
				return err
			}
			agent, done, err := openUser(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholeRun(c, agent, args[0])
			if err != nil {
				return err
			}
			defer awaiting(c, "waiting for the site's files to begin", filesTime)()
			var run message.Run
			if err := agent.call(c.Context(), "POST", "/v1/run/fetch", runCall{ID: id, Unit: unit, Dir: dir}, &run); err != nil {
				return err
			}
			return printFetched(c, run, unit, out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to; it is made if it is not there")
	unitVar(c.Flags(), &unit, "only this unit, from 1 (default: all)")
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
			files = append(files, filepath.Join(outDir(out, len(run.Units), u.Unit), filepath.FromSlash(f.Path)))
		}
	}
	if wantsJSON(c) {
		return printJSON(stdout(c), map[string]any{"id": run.ID, "files": files})
	}
	for _, f := range files {
		fmt.Fprintln(stdout(c), f)
	}
	return nil
}

package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/sim/experiment"
	"ramp/cmd/ramp/cli"
)

type experimentFlags struct {
	logs, seed, out string
	repeat, jobs    int
	crowd, buyers   int
	set             []string
}

func newSimExperiment() *cobra.Command {
	var f experimentFlags
	c := &cobra.Command{
		Use: "experiment list | NAME | all", Short: "Reproduce the published experiments, and extend them",
		Args: cobra.ExactArgs(1), ValidArgsFunction: experimentNames,
		Long: `Run an experiment with the agents of the live system in virtual time, on machines that replay
workload logs: those in --logs, found by the machine's name, or synthetic ones. Writes every run
as CSV, every figure as SVG and PNG, a report that compares the figures with the published ones,
and shapes.csv, which lists the expected shapes and whether they held; 'all' adds an index.html,
and 'list' names the experiments and settings. An interrupt keeps finished runs (exit code 1).
Shapes that do not hold are reported but do not change the exit code. docs/EXPERIMENTS.md has
results.`,
		Example: "  ramp sim experiment list\n  ramp sim experiment rounds --out figures\n  ramp sim experiment scale --resources 100000 --users 1000 --out figures",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "list" {
				return listExperiments(c)
			}
			return f.run(c, args[0])
		},
	}
	c.Flags().StringVar(&f.logs, "logs", "", "`DIR` of workload logs; missing ones are synthetic")
	c.Flags().StringVar(&f.seed, "seed", "1", "`SEED` of everything random; the same seed gives the same bytes of CSV")
	c.Flags().IntVar(&f.repeat, "repeat", 0, "repetitions; 0: as published")
	c.Flags().StringVar(&f.out, "out", "experiments", "write to `DIR`")
	c.Flags().IntVar(&f.jobs, "jobs", defaultJobs(), "parallel runs (default: one per processor)")
	c.Flags().Lookup("jobs").DefValue = "" // documents are the same on every machine
	c.Flags().IntVar(&f.crowd, "resources", 0, "scale: at most N sites, created as they are called, with indexes; 0: as in --set resources")
	c.Flags().IntVar(&f.buyers, "users", 1000, "scale with --resources: users that buy at once")
	c.Flags().StringArrayVar(&f.set, "set", nil, "change a setting, `NAME=VALUE`; 'list' shows them; repeatable")
	return c
}

func experimentNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := []cobra.Completion{"list", "all"}
	for _, e := range experiment.Experiments() {
		names = append(names, cobra.CompletionWithDesc(e.Name, e.Shows))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

type experimentLine struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Shows  string `json:"shows"`
}

type settingLine struct {
	Key     string `json:"key"`
	Default string `json:"default"`
	About   string `json:"about"`
}

func listExperiments(c *cobra.Command) error {
	lines, settings := []experimentLine{}, []settingLine{}
	for _, e := range experiment.Experiments() {
		lines = append(lines, experimentLine{e.Name, e.Source, e.Shows})
	}
	for _, s := range experiment.Default().Lines() {
		settings = append(settings, settingLine{s[0], s[1], s[2]})
	}
	v := struct {
		Experiments []experimentLine `json:"experiments"`
		Settings    []settingLine    `json:"settings"`
	}{lines, settings}
	return cli.Show(c, v, func(w io.Writer) {
		rows := [][]string{{"experiment", "source", "shows"}}
		for _, l := range lines {
			rows = append(rows, []string{l.Name, l.Source, l.Shows})
		}
		cli.Table(w, rows...)
		fmt.Fprintln(w)
		rows = [][]string{{"setting", "default", ""}}
		for _, l := range settings {
			rows = append(rows, []string{l.Key, l.Default, l.About})
		}
		cli.Table(w, rows...)
	})
}

func (f *experimentFlags) lab() (*experiment.Lab, error) {
	seed, err := strconv.ParseUint(f.seed, 10, 64)
	switch {
	case err != nil:
		return nil, exit.Fail(exit.Usage, "", "--seed %q: want a number in 0..%d", f.seed, uint64(math.MaxUint64))
	case f.jobs < 1 || f.jobs > experiment.MaxJobs:
		return nil, exit.Fail(exit.Usage, "", "--jobs %d: want 1..%d", f.jobs, experiment.MaxJobs)
	case f.repeat < 0 || f.repeat > experiment.MaxRepeat:
		return nil, exit.Fail(exit.Usage, "", "--repeat %d: want 0..%d", f.repeat, experiment.MaxRepeat)
	}
	if f.crowd != 0 && (f.crowd < 20 || f.crowd > experiment.MaxCrowd) || f.buyers < 1 || f.buyers > experiment.MaxBuyers {
		return nil, exit.Fail(exit.Usage, "", "resources %d, users %d: want 20..%d resources, 1..%d users", f.crowd, f.buyers, experiment.MaxCrowd, experiment.MaxBuyers)
	}
	settings := experiment.Default()
	for _, text := range f.set {
		if err := settings.Set(text); err != nil {
			return nil, exit.Fail(exit.Usage, "'ramp sim experiment list' describes each", "--set: %w", err)
		}
	}
	if err := settings.Validate(); err != nil {
		return nil, exit.Fail(exit.Usage, "", "--set: %w", err)
	}
	logs, err := experiment.LoadLogs(f.logs)
	if err != nil {
		return nil, exit.Fail(exit.Usage, config.LogHint(err), "%w", err)
	}
	lab, err := experiment.NewLab(logs)
	if err != nil {
		return nil, err
	}
	if lab.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	lab.Settings, lab.Seed, lab.Repeat, lab.Jobs = settings, seed, f.repeat, f.jobs
	lab.Crowd, lab.Buyers = f.crowd, f.buyers
	return lab, nil
}

func (f *experimentFlags) run(c *cobra.Command, name string) error {
	list := experiment.Experiments()
	if name != "all" {
		e, err := experiment.Find(name)
		if err != nil {
			return exit.Fail(exit.Usage, "", "%w", err)
		}
		list = []experiment.Experiment{e}
	}
	lab, err := f.lab()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return exit.Fail(exit.Usage, "", "--out: %w", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(experiment.GCPercent)
	}
	results, err := f.make(c, lab, list)
	err = cmp.Or(err, experiment.Finish(f.out, results, name == "all"))
	return errors.Join(printExperiments(c, results, f.out), err)
}

// make runs experiments, and writes the results of each when it is done or interrupted.
func (f *experimentFlags) make(c *cobra.Command, lab *experiment.Lab, list []experiment.Experiment) ([]*experiment.Result, error) {
	var results []*experiment.Result
	for _, e := range list {
		show := newSimProgress(c.ErrOrStderr())
		lab.Progress = func(what string, done, of int) {
			show.say(func() string {
				return fmt.Sprintf("%s %s: %d of %d runs, %s", bar(float64(done)/float64(of)), what, done, of, time.Since(show.begun).Truncate(time.Second))
			})
		}
		r, err := lab.Run(c.Context(), e)
		show.End()
		fmt.Fprintf(c.ErrOrStderr(), "%s: %.1f s\n", e.Name, time.Since(show.begun).Seconds())
		if r.NotRun != "" {
			fmt.Fprintf(c.ErrOrStderr(), "%s: not run: %s\n", e.Name, r.NotRun)
		}
		results = append(results, r)
		if bad, ok := errors.AsType[experiment.LogError](err); ok {
			err = exit.Fail(exit.Usage, config.LogHint(bad), "%w", err)
		}
		if err = cmp.Or(err, r.Write(f.out)); err != nil {
			return results, err
		}
	}
	return results, nil
}

type shapeLine struct {
	Experiment string `json:"experiment"`
	Shape      string `json:"shape"`
	Held       bool   `json:"held"`
	Measured   string `json:"measured"`
	Expected   string `json:"expected"`
}

func printExperiments(c *cobra.Command, results []*experiment.Result, out string) error {
	lines, files, complete := []shapeLine{}, []string{}, true
	for _, r := range results {
		complete = complete && r.Complete
		files = append(files, r.Name+".md")
		for _, s := range r.Shapes {
			lines = append(lines, shapeLine{r.Name, s.Name, s.Held, s.Measured, s.Expected})
		}
	}
	v := struct {
		Out      string      `json:"out"`
		Reports  []string    `json:"reports"`
		Shapes   []shapeLine `json:"shapes"`
		Complete bool        `json:"complete"`
	}{out, files, lines, complete}
	return cli.Show(c, v, func(w io.Writer) {
		printShapes(w, lines)
		fmt.Fprintf(w, "written to %s: %s\n", out, strings.Join(files, ", "))
	})
}

func printShapes(w io.Writer, lines []shapeLine) {
	rows := [][]string{}
	for _, l := range lines {
		word := "held"
		if !l.Held {
			word = "NOT HELD"
		}
		rows = append(rows, []string{l.Experiment, word, l.Shape, l.Measured + " (want: " + l.Expected + ")"})
	}
	cli.Table(w, rows...)
}

package user

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

func newUserRun() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run [FILE] [--app NAME | -- COMMAND …]", Short: "Buy time and run a program in it", GroupID: "run",
		Long: `Buy the time that FILE asks for, send the inputs to the site, start the program when the slot
begins, print its output, fetch the files it leaves to --out, and end with its exit code: that
of the first unit whose code is not zero; 124 if the slot or the metered contract ended it, 137
if you killed it, 125 if it never ran or was lost. The codes of the command itself begin at 64.
It asks before buying as 'ramp user buy' does.

FILE is a job file in YAML, a script with '#RAMP' lines, or an RFQL document ('-': standard
input). A COMMAND such as ./program is uploaded if it is a file here; 'program' is the site's.

The program runs in every unit of the request, each time in a directory of its own with the
inputs. You can interrupt the command: the job continues, and 'ramp logs -f ID' follows it.
You can repeat it: until its result has been shown, the same command continues the same job and
buys nothing twice. docs/JOBS.md explains job files, --array and --dependency.

` + cli.RequestHelp + `
Here --within is optional: without it the program starts within ` + beginWords + `.`,
		Example: `  ramp run -n 4 -t 10m -- ./program
  ramp run -n 4 -t 10m --max-price 40 -i data.csv -o results -- ./analyse data.csv
  ramp run -n 4 -t 10m --and -n 1 -- ./program
  ramp run -n 1 -t 10m --array 1-30%8 -o results -- ./task {}
  ramp run job.yaml
  ramp run job.xml --app render --param scene=kitchen`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, args []string) error { return runRun(c, args, f) },
	}
	f.register(c)
	return cli.EndsWithProgram(c)
}

func newUserSubmit() *cobra.Command {
	f := &runFlags{detach: true, buy: buyFlags{again: true}}
	l := &levelFlags{}
	c := &cobra.Command{
		Use: "submit [FILE] [--app NAME | -- COMMAND …]", Short: "Buy time for a program, and return once it is bought", GroupID: "run",
		Long: `Buy time for a program as 'ramp run' does, print the short ID and the name of the job, and
return; without a daemon, once the site has the inputs. 'ramp wait' waits for the job, 'ramp
logs' prints its output, and 'ramp fetch' gets its files. A repeated command is another job,
unless --id names the first. A job file's 'out' and 'retry' are for 'ramp run'.

With --level, nothing is bought: the job is offered to a federation of sites, which share their
cores by priority (docs/FEDERATION.md). The command then stays until the job has ended, and ends
with an exit code of 'ramp run': the program's, or one from 64 if it fails itself.

` + cli.RequestHelp + `
Here --within is optional: without it the program starts within ` + beginWords + `.`,
		Example: `  ramp submit -n 4 -t 10m --yes -- ./analyse
  ramp submit -n 4 -t 10m --yes --name first -- ./program && ramp wait first
  ramp submit --level high --modules 2..4 --wall 20m --in data --out results -- ./program`,
		Args: func(c *cobra.Command, args []string) error {
			if l.level != "" || c.Flags().Changed("modules") {
				return nil
			}
			return f.arguments(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if l.level != "" {
				return submitLevel(c, args, f, l)
			}
			if c.Flags().Changed("modules") || c.Flags().Changed("home") || c.Flags().Changed("out") {
				return exit.Fail(exit.Usage, "", "--modules, --home and --out are for a job with --level")
			}
			return runRun(c, args, f)
		},
	}
	f.register(c)
	l.register(c, f)
	return c
}

// buyAndRun buys, or resumes an earlier purchase, and stays until the program ends and its files
// are here, or only until it is bought. It returns nil if nothing was bought, or with detach.
func (f *runFlags) buyAndRun(c *cobra.Command, agent *control.Client, call control.BuyCall, accepts consent) (*watching, error) {
	p, err := f.buy.purchase(c, agent, call, func(id string) (control.BuyCall, error) {
		next, err := f.order(id)
		next.Resume, next.Named, next.Follows = call.Resume, call.Named, call.Follows
		return next, err
	}, accepts)
	if err != nil {
		return nil, err
	}
	if !p.Settled {
		return nil, printResult(c, agent, p, false)
	}
	if p.ID != call.ID && !strings.HasPrefix(p.ID, call.ID+".") { // a counter-offer and --wait append a number
		fmt.Fprintf(cli.Notes(c), "resuming %s, from the same command (--again runs it once more)\n", cli.ShortID(agent, p.ID))
	}
	warnLow(c, agent)
	w := newWatching(c, agent, p.ID, cli.NameOf(p))
	fmt.Fprintf(cli.Notes(c), "%s: %s\n", w.name, order.BoughtWords(p))
	if f.detach {
		return nil, w.submitted()
	}
	if err := w.stay(); err != nil {
		return nil, err
	}
	if err := w.fetch(f.out); err != nil {
		return nil, err
	}
	w.explain(time.Now())
	return w, nil
}

// explain says what a user may do about a program that the site does not have, or did not start.
func (w *watching) explain(now time.Time) {
	if w.run.Exit == 127 { // a shell's code of a program that is not there
		fmt.Fprintln(cli.Notes(w.c), "the site lacks the program, or one that it calls; './program' and --in bring files from here")
	}
	for _, u := range w.run.Units {
		if w.run.Exit == protocol.ExitNever && u.Status.Stage == message.StageFailed && !u.Lost && now.Before(u.Slot.End) {
			fmt.Fprintf(cli.Notes(w.c), "%s is still paid for; 'ramp user cancel %s' gives it back if the site allows that\n", w.name, w.short)
			return
		}
	}
}

type watching struct {
	c       *cobra.Command
	agent   *control.Client
	id      string
	short   string
	name    string
	run     message.Run
	printed map[int]string // the state of each unit as printed last
	paced   time.Time      // when the number of missing files was printed last
	fault   string         // as printed last
	waits   func()         // ends the note about a wait, unless nil
	json    bool           // print the program's output as JSON
	hushed  bool           // leave out how each index of an array ended
	mu      sync.Mutex     // guards the output
}

func newWatching(c *cobra.Command, agent *control.Client, id, name string) *watching {
	return &watching{c: c, agent: agent, id: id, short: cli.ShortID(agent, id), name: name, printed: map[int]string{}}
}

// stay follows the states and outputs of all units until the run ends.
func (w *watching) stay() error {
	ctx, cancel := context.WithCancel(w.c.Context())
	defer cancel()
	if err := control.Run.Ask(ctx, w.agent, control.RunCall{ID: w.id}, &w.run); err != nil {
		return w.stopped(err)
	}
	w.hushed = w.run.Program.Array && cli.Quiet(w.c)
	var wait sync.WaitGroup
	logs := make([]error, len(w.run.Units))
	for i, u := range w.run.Units {
		prefix := ""
		if len(w.run.Units) > 1 {
			prefix = fmt.Sprintf("%d| ", u.Unit+1)
		}
		wait.Go(func() { logs[i] = w.print(ctx, u.Unit+1, prefix, true) })
	}
	err := w.states(ctx, nil)
	if err != nil {
		cancel()
	}
	wait.Wait()
	return w.stopped(errors.Join(append([]error{err}, logs...)...))
}

// stopped explains what happens to the run after following it ended with err.
func (w *watching) stopped(err error) error {
	var e *exit.Error
	switch {
	case err == nil, errors.As(err, &e) && e.Code == exit.Usage:
		return err
	case errors.Is(err, control.ErrGone):
		return exit.Fail(exit.Unreachable, "the next command starts the daemon again; 'ramp logs -f "+w.short+"' follows the job", "%s: %w", w.short, control.ErrGone)
	case w.c.Context().Err() == nil:
		return exit.WithCode(exit.Failed, fmt.Errorf("%s: %w", w.short, err))
	case !w.agent.Daemon && !w.atSites():
		is := "bought"
		if w.run.Federation {
			is = "offered"
		}
		return exit.Fail(exit.Failed, "repeat the command to continue", "interrupted; %s is %s, and the next 'ramp user' command that joins the market brings its job to the site", w.short, is)
	}
	repeat := ""
	if control.Session() != "" {
		repeat = "; repeat the command to continue here"
	}
	return exit.Fail(exit.Failed, "'ramp logs -f "+w.short+"' follows it, 'ramp kill "+w.short+"' ends it"+repeat,
		"interrupted; the job of %s %s", w.short, w.goesOn())
}

// goesOn describes what happens to the job after an interrupt.
func (w *watching) goesOn() string {
	switch {
	case !w.atSites():
		return "will be brought to the site by the daemon"
	case slices.ContainsFunc(w.run.Units, func(u message.RunUnit) bool { return u.Status.Stage == message.StageReady }):
		return "will start with its slot"
	}
	return "keeps running"
}

// atSites reports whether the sites have everything that the job needs.
func (w *watching) atSites() bool {
	return len(w.run.Units) > 0 && !slices.ContainsFunc(w.run.Units, func(u message.RunUnit) bool {
		s := u.Status.Stage
		return s == message.StageAsked || s == message.StageStaging || s == message.StageGathering
	})
}

// states prints every change of the run until it ends, or fails with errEnough once enough (may be nil) is met.
func (w *watching) states(ctx context.Context, enough func() bool) error {
	several := len(w.run.Units) > 1
	late := &order.Lateness{Reported: map[string]bool{}, Say: func(u message.RunUnit) { w.line(several, u, order.LateWords(u)) }}
	defer late.End()
	err := control.RunFollow.Follow(ctx, w.agent, control.RunCall{ID: w.id}, func(run message.Run) error {
		w.run = run
		for _, u := range w.run.Units {
			w.showUnit(u)
		}
		w.showFault()
		late.Expect(time.Now(), w.run.Units)
		if enough != nil && enough() {
			return errEnough
		}
		return nil
	})
	if err == nil && !w.run.Over {
		err = w.agent.Gone(ctx, errors.New("the agent stopped reporting before the job ended"))
	}
	return err
}

// stagingPace is the least time between two lines about files on their way to a site.
const stagingPace = time.Second

func (w *watching) showUnit(u message.RunUnit) {
	text := node.UnitWords(u)
	if w.printed[u.Unit] == text {
		return
	}
	if u.Status.Stage == message.StageStaging && u.Status.Missing > 0 { // it changes with each file
		if time.Since(w.paced) < stagingPace {
			return
		}
		w.paced = time.Now()
	}
	w.printed[u.Unit] = text
	w.line(len(w.run.Units) > 1, u, text)
}

// line prints a line about a unit, with its number if there are several.
func (w *watching) line(several bool, u message.RunUnit, text string) {
	which := ""
	if several {
		which = fmt.Sprintf(" unit %d", u.Unit+1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	to := cli.Notes(w.c)
	if u.Status.Stage == message.StageFailed {
		to = cli.Stderr(w.c) // an error
	}
	fmt.Fprintln(to, words.ForPeople(fmt.Sprintf("%s%s: %s", w.name, which, text)))
}

// showFault prints why inputs are not at a site, if that changed.
func (w *watching) showFault() {
	if w.fault == w.run.Fault {
		return
	}
	if w.fault = w.run.Fault; w.fault == "" {
		return
	}
	again := "; trying again"
	if w.run.Killing {
		again = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(cli.Notes(w.c), words.ForPeople(fmt.Sprintf("%s: inputs: %s%s", w.name, w.fault, again)))
}

// answered ends the note about a wait.
func (w *watching) answered() {
	if w.waits != nil {
		w.waits()
		w.waits = nil
	}
}

// sayWaiting prints the state of a unit whose program has not started, and so has no output.
func (w *watching) sayWaiting(number int) {
	u, err := node.RunUnit(w.run, number)
	if err != nil {
		return
	}
	switch u.Status.Stage {
	case message.StageAsked, message.StageStaging, message.StageGathering, message.StageReady:
		cli.ProgressOf(w.c).Say(w.short + ": " + node.UnitWords(u))
	}
}

// printedLine is a piece of a unit's output in JSON; the names are fixed.
type printedLine struct {
	Unit int `json:"unit"` // from 1
	control.LogLine
}

func (w *watching) print(ctx context.Context, unit int, prefix string, follow bool) error {
	out, errs := &words.Prefixed{W: cli.Stdout(w.c), Mu: &w.mu, Prefix: prefix}, &words.Prefixed{W: cli.Stderr(w.c), Mu: &w.mu, Prefix: prefix}
	if cli.WantsJSON(w.c) {
		out.W = cli.Stderr(w.c)
	}
	defer out.End()
	defer errs.End()
	return control.RunLog.Follow(ctx, w.agent, control.RunCall{ID: w.id, Unit: unit, Follow: follow}, func(line control.LogLine) error {
		w.answered()
		to := out
		switch {
		case w.json:
			return words.PrintJSON(cli.Stdout(w.c), printedLine{max(unit, 1), line}, "")
		case line.Stream == "stderr":
			to = errs
		}
		if line.Stream == "stderr" && w.hushed {
			return nil
		}
		_, err := to.Write(line.Data)
		return err
	})
}

// fetch writes the files that the program left to a directory, or says how to get them.
func (w *watching) fetch(out string) error {
	n := 0
	for _, u := range w.run.Units {
		n += len(w.run.Program.Wanted(u))
		if u.Status.Why != "" && u.Status.Stage == message.StageDone {
			fmt.Fprintf(cli.Notes(w.c), "%s unit %d: %s\n", w.name, u.Unit+1, u.Status.Why)
		}
	}
	if n == 0 {
		return nil
	}
	if out == "" {
		fmt.Fprintf(cli.Notes(w.c), "%s left %s; 'ramp fetch %s --out DIR' gets them until %s\n", w.name, words.Plural(n, "file"), w.short, words.At(w.run.Units[0].Status.Keep))
		return nil
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := control.RunFetch.Ask(w.c.Context(), w.agent, control.RunCall{ID: w.id, Dir: dir}, nil); err != nil {
		return err
	}
	fmt.Fprintf(cli.Notes(w.c), "%s left %s, now in %s\n", w.name, words.Plural(n, "file"), out)
	return nil
}

// result prints the run, records that it and the attempts before it were shown, and ends with the
// program's exit code.
func (w *watching) result(shown []string) error {
	if err := cli.Show(w.c, w.run, func(io.Writer) {}); err != nil {
		return err
	}
	// Only after everything was shown: if this command is killed earlier, the same command shows
	// the run again and does not buy another.
	for _, id := range shown {
		if err := control.RunCollected.Ask(w.c.Context(), w.agent, control.RunCall{ID: id}, nil); err != nil {
			return err
		}
	}
	return exit.OfProgram(w.run.Exit)
}

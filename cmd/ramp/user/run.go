package user

import (
	"context"
	"encoding/json"
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
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run [FILE] [--app NAME | -- COMMAND …]", Short: "Buy time and run a program in it", GroupID: "run",
		Long: `Buy what the RFQL document FILE ('-': standard input) asks for, send the inputs to the site,
start the program when the slot begins, print its output, fetch the files it leaves to --out,
and end with its exit code: that of the first unit whose code is not zero; 124 if the slot or
the metered contract ended it, 137 if you killed it, 125 if it never ran or was lost. If nothing
was bought, the exit codes are those of 'ramp user buy'.

The program runs in every unit of the request, each time in a directory of its own with the
inputs. You can interrupt the command: the job continues, and 'ramp user logs -f ID' follows it.
You can repeat it: until its result has been shown, the same command continues the same job and
buys nothing twice.

` + cli.RequestHelp + `
Here --within is optional: without it the program starts within ` + beginWords + `.`,
		Example: `  ramp user run --cores 4 --wall 10m --max-price 40 -- ./program
  ramp user run --cores 4 --wall 10m --max-price 40 --in data.csv --out results -- ./analyse data.csv
  ramp user run --cores 4 --wall 10m --max-price 40 --and --cores 1 -- ./program
  ramp user run job.xml --app render --param scene=kitchen`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, args []string) error { return runRun(c, args, f) },
	}
	f.register(c)
	return c
}

// buyAndRun buys, or resumes an earlier purchase, and stays until the program ends.
func buyAndRun(c *cobra.Command, agent *control.Client, call control.BuyCall, accepts consent, out string) error {
	p, err := buyCountered(c, agent, call, accepts)
	if err != nil {
		return err
	}
	if !p.Settled {
		return printResult(c, agent, p, false)
	}
	if p.ID != call.ID && !strings.HasPrefix(p.ID, call.ID+".counter") { // a counter-offer appends a number
		fmt.Fprintf(cli.Stderr(c), "resuming %s, from the same command (--again runs it once more)\n", p.ID)
	}
	warnLow(c, agent)
	w := &watching{c: c, agent: agent, id: p.ID, name: cli.NameOf(p), printed: map[int]string{}}
	if err := w.stay(); err != nil {
		return err
	}
	if err := w.fetch(out); err != nil {
		return err
	}
	w.sayPaid(time.Now())
	return w.result()
}

// sayPaid tells the user how to give back a slot in which the site did not start the program.
func (w *watching) sayPaid(now time.Time) {
	for _, u := range w.run.Units {
		if w.run.Exit == user.ExitNever && u.Status.Stage == message.StageFailed && !u.Lost && now.Before(u.Slot.End) {
			fmt.Fprintf(cli.Stderr(w.c), "%s is still paid for; 'ramp user cancel %s' gives it back if the site allows that\n", w.name, w.id)
			return
		}
	}
}

// watching shows a run until it ends.
type watching struct {
	c       *cobra.Command
	agent   *control.Client
	id      string
	name    string
	run     message.Run
	printed map[int]string // the state of each unit as printed last
	paced   time.Time      // when the number of missing files was printed last
	fault   string         // as printed last
	waits   func()         // ends the note about a wait, unless nil
	json    bool           // print the program's output as JSON
	mu      sync.Mutex     // guards the output
}

// stay follows the states and outputs of all units until the run ends.
func (w *watching) stay() error {
	ctx, cancel := context.WithCancel(w.c.Context())
	defer cancel()
	if err := control.Run.Ask(ctx, w.agent, control.RunCall{ID: w.id}, &w.run); err != nil {
		return w.stopped(err)
	}
	var wait sync.WaitGroup
	logs := make([]error, len(w.run.Units))
	for i, u := range w.run.Units {
		prefix := ""
		if len(w.run.Units) > 1 {
			prefix = fmt.Sprintf("%d| ", u.Unit+1)
		}
		wait.Go(func() { logs[i] = w.print(ctx, u.Unit+1, prefix, true) })
	}
	err := w.states(ctx)
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
		return exit.Fail(exit.Unreachable, "once the daemon runs again, the same command continues, and 'ramp user jobs' shows the state", "%s: %w", w.id, control.ErrGone)
	case w.c.Context().Err() == nil:
		return exit.WithCode(exit.Failed, fmt.Errorf("%s: %w", w.id, err))
	case !w.agent.Daemon && !w.atSites():
		return exit.Fail(exit.Failed, "repeat the command to continue", "interrupted; %s is bought, and the next 'ramp user' command that joins the market brings its job to the site", w.id)
	}
	return exit.Fail(exit.Failed, "'ramp user logs -f "+w.id+"' follows it, 'ramp user kill "+w.id+"' ends it; repeat the command to continue here",
		"interrupted; the job of %s %s", w.id, w.goesOn())
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

// states prints every change of the run until it ends.
func (w *watching) states(ctx context.Context) error {
	several := len(w.run.Units) > 1
	late := &lateness{reported: map[string]bool{}, say: func(u message.RunUnit) { w.line(several, u, lateWords(u)) }}
	defer late.end()
	err := control.RunFollow.Follow(ctx, w.agent, control.RunCall{ID: w.id}, func(run message.Run) error {
		w.run = run
		for _, u := range w.run.Units {
			w.showUnit(u)
		}
		w.showFault()
		late.expect(time.Now(), w.run.Units)
		return nil
	})
	if err == nil && !w.run.Over {
		err = w.agent.Gone(ctx, errors.New("the agent stopped reporting before the job ended"))
	}
	return err
}

// stagingPace is the least time between two lines about files on their way to a site.
const stagingPace = time.Second

// showUnit prints the state of a unit if it changed.
func (w *watching) showUnit(u message.RunUnit) {
	words := node.UnitWords(u)
	if w.printed[u.Unit] == words {
		return
	}
	if u.Status.Stage == message.StageStaging && u.Status.Missing > 0 { // it changes with each file
		if time.Since(w.paced) < stagingPace {
			return
		}
		w.paced = time.Now()
	}
	w.printed[u.Unit] = words
	w.line(len(w.run.Units) > 1, u, words)
}

// line prints a line about a unit, with its number if there are several.
func (w *watching) line(several bool, u message.RunUnit, words string) {
	which := ""
	if several {
		which = fmt.Sprintf(" unit %d", u.Unit+1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(cli.Stderr(w.c), "%s%s: %s\n", w.name, which, words)
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
	fmt.Fprintf(cli.Stderr(w.c), "%s: inputs: %s%s\n", w.name, w.fault, again)
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
		cli.ProgressOf(w.c).Say(w.id + ": " + node.UnitWords(u))
	}
}

// printedLine is a piece of a unit's output in JSON; the names are fixed.
type printedLine struct {
	Unit int `json:"unit"` // from 1
	control.LogLine
}

// print prints the output of a unit.
func (w *watching) print(ctx context.Context, unit int, prefix string, follow bool) error {
	out, errs := &prefixed{w: cli.Stdout(w.c), mu: &w.mu, prefix: prefix}, &prefixed{w: cli.Stderr(w.c), mu: &w.mu, prefix: prefix}
	if cli.WantsJSON(w.c) {
		out.w = cli.Stderr(w.c)
	}
	defer out.end()
	defer errs.end()
	return control.RunLog.Follow(ctx, w.agent, control.RunCall{ID: w.id, Unit: unit, Follow: follow}, func(line control.LogLine) error {
		w.answered()
		to := out
		switch {
		case w.json:
			return json.NewEncoder(cli.Stdout(w.c)).Encode(printedLine{max(unit, 1), line})
		case line.Stream == "stderr":
			to = errs
		}
		_, err := to.Write(line.Data)
		return err
	})
}

// fetch writes the files that the program left to a directory, or says how to get them.
func (w *watching) fetch(out string) error {
	n := 0
	for _, u := range w.run.Units {
		n += len(u.Status.Outputs)
		if u.Status.Why != "" && u.Status.Stage == message.StageDone {
			fmt.Fprintf(cli.Stderr(w.c), "%s unit %d: %s\n", w.name, u.Unit+1, u.Status.Why)
		}
	}
	if n == 0 {
		return nil
	}
	if out == "" {
		fmt.Fprintf(cli.Stderr(w.c), "%s left %s; 'ramp user fetch %s --out DIR' gets them until %s\n", w.name, words.Plural(n, "file"), w.id, words.Timestamp(w.run.Units[0].Status.Keep))
		return nil
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := control.RunFetch.Ask(w.c.Context(), w.agent, control.RunCall{ID: w.id, Dir: dir}, nil); err != nil {
		return err
	}
	fmt.Fprintf(cli.Stderr(w.c), "%s left %s, now in %s\n", w.name, words.Plural(n, "file"), out)
	return nil
}

// result prints the run, records that it was shown, and ends with the program's exit code.
func (w *watching) result() error {
	if err := cli.Show(w.c, w.run, func(io.Writer) {}); err != nil {
		return err
	}
	// Only after everything was shown: if this command is killed earlier, the same command shows
	// the run again and does not buy another.
	if err := control.RunCollected.Ask(w.c.Context(), w.agent, control.RunCall{ID: w.id}, nil); err != nil {
		return err
	}
	if w.run.Exit != 0 {
		return exit.Silent(w.run.Exit)
	}
	return nil
}

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol/message"
)

func newUserRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [FILE] [--app NAME | -- COMMAND …]",
		Short: "Buy what a request asks for, and run a program in it",
		Long: `Buys what the RFQL document FILE ('-': standard input) asks for, brings the inputs to
the site, begins the program when the slot begins, prints what it prints, fetches what
it leaves to --out, and ends with its exit code: that of the first unit whose code is
not zero; 124 if its slot, or its metered contract, ended it, 137 if you killed it, 125
if it never ran or was lost. If nothing was bought, the exit codes are those of
'ramp user buy'.

The program runs in every unit of the request, each in a directory of its own with
the inputs. It is safe to interrupt: the job runs on, and 'ramp user logs -f ID'
follows it. It is safe to repeat: until the result of the same command was shown, it
is gone on with; it is not bought twice.

` + requestHelp + `
Here --within may be left out: the program then begins within ` + beginWords + `.`,
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

// buyAndRun buys, or goes on with what was bought, and stays until the program is
// over.
func buyAndRun(c *cobra.Command, agent *caller, call buyCall, accepts consent, out string) error {
	p, err := buyCountered(c, agent, call, accepts)
	if err != nil {
		return err
	}
	if !p.Settled {
		return printResult(c, agent, p, false)
	}
	if p.ID != call.ID && !strings.HasPrefix(p.ID, call.ID+".counter") { // that of a counter-offer has a number behind it
		fmt.Fprintf(stderr(c), "going on with %s, which is the same command (--again runs it once more)\n", p.ID)
	}
	warnLow(c, agent)
	w := &watching{c: c, agent: agent, id: p.ID, name: nameOf(p), told: map[int]string{}}
	if err := w.stay(); err != nil {
		return err
	}
	if err := w.fetch(out); err != nil {
		return err
	}
	w.tellPaid(time.Now())
	return w.result()
}

// tellPaid says what can be done about a slot that was bought for a program that
// its site did not begin.
func (w *watching) tellPaid(now time.Time) {
	for _, u := range w.run.Units {
		if w.run.Exit == user.ExitNever && u.Status.Stage == message.StageFailed && !u.Lost && now.Before(u.Slot.End) {
			fmt.Fprintf(stderr(w.c), "%s is paid for all the same; 'ramp user cancel %s' gives it back where the site allows that\n", w.name, w.id)
			return
		}
	}
}

// watching shows a run until it is over.
type watching struct {
	c     *cobra.Command
	agent *caller
	id    string
	name  string
	run   message.Run
	told  map[int]string // how each unit stood when it was told last
	paced time.Time      // when files that are missing were counted last
	fault string         // that was told last
	waits func()         // ends what is said of a wait; nil: nothing is
	json  bool           // what the program prints is the result
	mu    sync.Mutex     // of what is printed
}

// stay follows the states and the outputs of all units until everything is over.
func (w *watching) stay() error {
	ctx, cancel := context.WithCancel(w.c.Context())
	defer cancel()
	if err := w.agent.call(ctx, "POST", "/v1/run", runCall{ID: w.id}, &w.run); err != nil {
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

// stopped says what goes on when somebody stopped looking.
func (w *watching) stopped(err error) error {
	var e *exitError
	switch {
	case err == nil, errors.As(err, &e) && e.code == exitUsage:
		return err
	case errors.Is(err, errGone):
		return fail(exitUnreachable, "the same command goes on here once it runs again, and 'ramp user jobs' tells how it stands", "%s: %w", w.id, errGone)
	case w.c.Context().Err() == nil:
		return withCode(exitFailed, fmt.Errorf("%s: %w", w.id, err))
	case !w.agent.daemon && !w.atSites():
		return fail(exitFailed, "the same command again goes on here", "interrupted; %s is bought, and its job is brought to the site by the next 'ramp user' command that joins the market", w.id)
	}
	return fail(exitFailed, "'ramp user logs -f "+w.id+"' follows it, 'ramp user kill "+w.id+"' ends it; the same command again goes on here",
		"interrupted; the job of %s %s", w.id, w.goesOn())
}

// goesOn says what becomes of a job that nobody looks at.
func (w *watching) goesOn() string {
	switch {
	case !w.atSites():
		return "is brought to the site by the daemon"
	case slices.ContainsFunc(w.run.Units, func(u message.RunUnit) bool { return u.Status.Stage == message.StageReady }):
		return "begins with its slot"
	}
	return "runs on"
}

// atSites reports whether the sites have all that the job needs.
func (w *watching) atSites() bool {
	return len(w.run.Units) > 0 && !slices.ContainsFunc(w.run.Units, func(u message.RunUnit) bool {
		s := u.Status.Stage
		return s == message.StageAsked || s == message.StageStaging || s == message.StageGathering
	})
}

// states tells every change of the run, until it is over.
func (w *watching) states(ctx context.Context) error {
	several := len(w.run.Units) > 1
	late := &lateness{told: map[string]bool{}, say: func(u message.RunUnit) { w.line(several, u, lateWords(u)) }}
	defer late.end()
	err := w.agent.stream(ctx, "/v1/run/follow", runCall{ID: w.id}, func(raw json.RawMessage) error {
		w.run = message.Run{}
		if err := json.Unmarshal(raw, &w.run); err != nil {
			return err
		}
		for _, u := range w.run.Units {
			w.tell(u)
		}
		w.tellFault()
		late.expect(time.Now(), w.run.Units)
		return nil
	})
	if err == nil && !w.run.Over {
		err = w.agent.gone(ctx, errors.New("the agent stopped telling of it before it was over"))
	}
	return err
}

// stagingPace is between two lines about files that are brought to a site.
const stagingPace = time.Second

// tell prints how a unit stands, when that is news.
func (w *watching) tell(u message.RunUnit) {
	words := unitWords(u)
	if w.told[u.Unit] == words {
		return
	}
	if u.Status.Stage == message.StageStaging && u.Status.Missing > 0 { // each file is news
		if time.Since(w.paced) < stagingPace {
			return
		}
		w.paced = time.Now()
	}
	w.told[u.Unit] = words
	w.line(len(w.run.Units) > 1, u, words)
}

// line prints something about a unit, of one or of several.
func (w *watching) line(several bool, u message.RunUnit, words string) {
	which := ""
	if several {
		which = fmt.Sprintf(" unit %d", u.Unit+1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(stderr(w.c), "%s%s: %s\n", w.name, which, words)
}

// tellFault prints why inputs are not at a site, when that is news.
func (w *watching) tellFault() {
	if w.fault == w.run.Fault {
		return
	}
	if w.fault = w.run.Fault; w.fault == "" {
		return
	}
	again := "; it is tried again"
	if w.run.Killing {
		again = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(stderr(w.c), "%s: inputs: %s%s\n", w.name, w.fault, again)
}

// answered ends what is said of a wait.
func (w *watching) answered() {
	if w.waits != nil {
		w.waits()
		w.waits = nil
	}
}

// tellWaiting says how a unit stands whose program has not begun: it has printed
// nothing.
func (w *watching) tellWaiting(number int) {
	u, err := runUnit(w.run, number)
	if err != nil {
		return
	}
	switch u.Status.Stage {
	case message.StageAsked, message.StageStaging, message.StageGathering, message.StageReady:
		progressOf(w.c).say(w.id + ": " + unitWords(u))
	}
}

// printedLine is a piece of what a unit prints, in JSON; the names are fixed.
type printedLine struct {
	Unit int `json:"unit"` // from 1
	logLine
}

// print prints what a unit prints.
func (w *watching) print(ctx context.Context, unit int, prefix string, follow bool) error {
	out, errs := &prefixed{w: stdout(w.c), mu: &w.mu, prefix: prefix}, &prefixed{w: stderr(w.c), mu: &w.mu, prefix: prefix}
	if wantsJSON(w.c) {
		out.w = stderr(w.c)
	}
	defer out.end()
	defer errs.end()
	return w.agent.stream(ctx, "/v1/run/log", runCall{ID: w.id, Unit: unit, Follow: follow}, func(raw json.RawMessage) error {
		w.answered()
		var line struct {
			logLine
			callError
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		to := out
		switch {
		case line.Error != "":
			return fail(line.Code, line.Hint, "%s", line.Error)
		case w.json:
			return json.NewEncoder(stdout(w.c)).Encode(printedLine{max(unit, 1), line.logLine})
		case line.Stream == "stderr":
			to = errs
		}
		_, err := to.Write(line.Data)
		return err
	})
}

// fetch writes what the program has left to a directory, and says what there is.
func (w *watching) fetch(out string) error {
	n := 0
	for _, u := range w.run.Units {
		n += len(u.Status.Outputs)
		if u.Status.Why != "" && u.Status.Stage == message.StageDone {
			fmt.Fprintf(stderr(w.c), "%s unit %d: %s\n", w.name, u.Unit+1, u.Status.Why)
		}
	}
	if n == 0 {
		return nil
	}
	if out == "" {
		fmt.Fprintf(stderr(w.c), "%s left %s; 'ramp user fetch %s --out DIR' gets them until %s\n", w.name, plural(n, "file"), w.id, secondTime(w.run.Units[0].Status.Keep))
		return nil
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := w.agent.call(w.c.Context(), "POST", "/v1/run/fetch", runCall{ID: w.id, Dir: dir}, nil); err != nil {
		return err
	}
	fmt.Fprintf(stderr(w.c), "%s left %s, now in %s\n", w.name, plural(n, "file"), out)
	return nil
}

// result shows the run, notes that it was shown, and ends with the program's exit code.
func (w *watching) result() error {
	if wantsJSON(w.c) {
		if err := printJSON(stdout(w.c), w.run); err != nil {
			return err
		}
	}
	// After all was shown: who is killed before that and asks again sees it again, and
	// does not pay for it again.
	if err := w.agent.call(w.c.Context(), "POST", "/v1/run/collected", runCall{ID: w.id}, nil); err != nil {
		return err
	}
	if w.run.Exit != 0 {
		return silent(w.run.Exit)
	}
	return nil
}

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

func newUserRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE [--app NAME | -- COMMAND …]",
		Short: "Buy what a request asks for, and run a program in it",
		Long: `Buys what the RFQL document FILE asks for, brings the inputs to the site, begins the
program when the slot begins, prints what it prints, fetches what it leaves to --out,
and ends with its exit code: that of the first unit whose code is not zero; 124 if its
slot, or its metered contract, ended it, 137 if you killed it, 125 if it never ran or was lost. If nothing was
bought, the exit codes are those of 'ramp user buy'.

The program runs in every unit of the request, each in a directory of its own with
the inputs. It is safe to interrupt: the job runs on, and 'ramp user logs -f ID'
follows it. It is safe to repeat: until the result of the same command was shown, it
is gone on with; it is not bought twice.`,
		Example: `  ramp user run job.xml --in data.csv --out results -- ./analyse data.csv
  ramp user run job.xml --app render --param scene=kitchen`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runRun(c, args, f) },
	}
	f.buy.registerHow(c)
	f.buy.registerCounter(c)
	f.buy.registerReplace(c)
	fs := c.Flags()
	fs.StringVar(&f.app, "app", "", "an application that the site has installed, in place of a command")
	fs.StringArrayVar(&f.params, "param", nil, "NAME=VALUE for a parameter of the application; may be repeated")
	fs.StringArrayVar(&f.in, "in", nil, "file or directory to bring along, PATH or PATH=NAME; may be repeated")
	fs.StringVar(&f.out, "out", "", "directory to write what the program leaves to; it is made if it is not there")
	fs.StringVar(&f.buy.id, "id", "", "ID of the purchase; one that was given before is gone on with, not bought again (default: a random one)")
	fs.BoolVar(&f.buy.again, "again", false, "buy and run once more, also while the same command is not over")
	fs.BoolVar(&f.buy.approve, "approve", false, "ask before buying, also when the request is met")
	return c
}

// runFlags are what to run and how to buy, as given on the command line.
type runFlags struct {
	buy    buyFlags
	app    string
	params []string
	in     []string
	out    string
}

// program is what is to run.
func (f runFlags) program(command []string, document []byte) (*message.Program, error) {
	if (f.app == "") == (len(command) == 0) {
		return nil, fail(exitUsage, "ramp user run FILE -- COMMAND, or ramp user run FILE --app NAME", "want a command or an application, and not both")
	}
	p := &message.Program{App: f.app, Command: command}
	for _, s := range f.params {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || f.app == "" {
			return nil, fail(exitUsage, "", "--param %q: want NAME=VALUE, for an application", s)
		}
		p.Params = append(p.Params, message.Param{Name: name, Value: value})
	}
	if len(command) > protocol.MaxArgs {
		return nil, fail(exitUsage, "", "a command of %d words, at most %d", len(command), protocol.MaxArgs)
	}
	var err error
	if p.Inputs, err = inputsOf(f.in); err != nil {
		return nil, err
	}
	p.Key, err = keyOf(*p, document)
	return p, err
}

// keyOf is the same for the same request, program and inputs.
func keyOf(p message.Program, document []byte) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(append(b, 0), document...))
	return hex.EncodeToString(sum[:16]), nil
}

func runRun(c *cobra.Command, args []string, f runFlags) error {
	command := args[1:]
	if at := c.ArgsLenAtDash(); at != 1 && len(command) > 0 {
		return fail(exitUsage, "ramp user run FILE -- COMMAND", "the command comes after '--'")
	}
	raw, err := readInput(c.InOrStdin(), args[0], protocol.MaxDocument)
	if err != nil {
		return err
	}
	b, doc, startNow, err := checkRequest(raw, args[0])
	if err != nil {
		return err
	}
	opt, err := f.buy.options(doc)
	if err != nil {
		return err
	}
	program, err := f.program(command, raw)
	if err != nil {
		return err
	}
	call := buyCall{
		ID: f.buy.id, Name: requestName(args[0], doc), Document: string(b), Options: opt, StartNow: startNow,
		Program: program, Resume: !f.buy.again || f.buy.id != "",
	}
	if call.ID == "" {
		call.ID = newPurchaseID(false)
	}
	accepts, err := f.buy.consent(call)
	if err != nil {
		return err
	}
	agent, closeAgent, err := openUserServing(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	return buyAndRun(c, agent, call, accepts, f.out)
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
	w := &watching{c: c, agent: agent, id: p.ID, name: nameOf(p), told: map[int]string{}}
	if err := w.stay(); err != nil {
		return err
	}
	if err := w.fetch(out); err != nil {
		return err
	}
	return w.result()
}

// watching shows a run until it is over.
type watching struct {
	c     *cobra.Command
	agent *caller
	id    string
	name  string
	run   message.Run
	told  map[int]string // how each unit stood when it was told last
	fault string         // that was told last
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
	switch {
	case err == nil:
		return nil
	case w.c.Context().Err() == nil:
		return withCode(exitFailed, fmt.Errorf("%s: %w", w.id, err))
	case w.agent.daemon || w.accepted():
		return fail(exitFailed, "'ramp user logs -f "+w.id+"' follows it, 'ramp user kill "+w.id+"' ends it; the same command again goes on here",
			"interrupted; the job of %s runs on", w.id)
	}
	return fail(exitFailed, "the same command again goes on here", "interrupted; %s is bought, and its job is brought to the site by the next 'ramp user' command that joins the market", w.id)
}

// accepted reports whether the job runs without this agent.
func (w *watching) accepted() bool {
	for _, u := range w.run.Units {
		switch u.Status.Stage {
		case message.StageAsked, message.StageStaging, message.StageGathering:
			return false
		}
	}
	return len(w.run.Units) > 0
}

// states tells every change of the run, until it is over.
func (w *watching) states(ctx context.Context) error {
	err := w.agent.stream(ctx, "/v1/run/follow", runCall{ID: w.id}, func(raw json.RawMessage) error {
		w.run = message.Run{}
		if err := json.Unmarshal(raw, &w.run); err != nil {
			return err
		}
		for _, u := range w.run.Units {
			w.tell(u)
		}
		w.tellFault()
		return nil
	})
	if err == nil && !w.run.Over {
		err = errors.New("the agent stopped telling of it before it was over")
	}
	return err
}

// tell prints how a unit stands, when that is news.
func (w *watching) tell(u message.RunUnit) {
	words := unitWords(u)
	if w.told[u.Unit] == words {
		return
	}
	w.told[u.Unit] = words
	which := ""
	if len(w.run.Units) > 1 {
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

// print prints what a unit prints.
func (w *watching) print(ctx context.Context, unit int, prefix string, follow bool) error {
	out, errs := &prefixed{w: stdout(w.c), mu: &w.mu, prefix: prefix}, &prefixed{w: stderr(w.c), mu: &w.mu, prefix: prefix}
	if wantsJSON(w.c) {
		out.w = stderr(w.c)
	}
	defer out.end()
	defer errs.end()
	return w.agent.stream(ctx, "/v1/run/log", runCall{ID: w.id, Unit: unit, Follow: follow}, func(raw json.RawMessage) error {
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

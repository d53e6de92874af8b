package user

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/again"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql/jobfile"
)

// A program whose request comes from flags, without an end, begins within this time.
const (
	beginWithin = 24 * time.Hour
	beginWords  = "a day"
)

// runFlags are the flags of a program to run and of its purchase.
type runFlags struct {
	buy buyFlags
	run order.Run
	out string

	detach bool // return once it is bought

	file   string        // of a job
	text   []byte        // of an RFQL document
	array  jobfile.Array // what is left of it
	slots  int           // in which it runs
	upload string        // what is uploaded, for people
}

func (f *runFlags) register(c *cobra.Command) {
	f.buy.register(c)
	f.buy.registerSpend(c)
	f.buy.registerWait(c)
	fs := c.Flags()
	fs.StringVar(&f.run.App, "app", "", "run application `NAME`, installed at the site, instead of a command")
	fs.StringArrayVar(&f.run.Params, "param", nil, "parameter `NAME=VALUE` of the application; repeatable")
	fs.StringArrayVarP(&f.run.In, "in", "i", nil, "send the file or directory `PATH`, or PATH=NAME to rename it; repeatable")
	if !f.detach {
		fs.StringVarP(&f.out, "out", "o", "", "fetch the files that the program leaves to `DIR`, created if missing")
		fs.BoolVar(&f.buy.again, "again", false, "buy and run once more even if the same command is unfinished")
		fs.IntVar(&f.run.Retry, "retry", 0, "buy again, up to `N` times, if the program fails or is lost")
	}
	fs.StringArrayVar(&f.run.Outputs, "outputs", nil, "fetch only files that match `GLOB`, such as '*.csv'; repeatable")
	fs.StringArrayVar(&f.run.Env, "env", nil, "set variable `NAME=VALUE` for the program; repeatable")
	fs.StringVar(&f.run.Array, "array", "", "run once for each of `INDEXES`: 1-30, 1,5,9 or 1-30:2; 1-30%8: at most 8 at once")
	fs.StringArrayVar(&f.run.After, "dependency", nil, "wait until `JOBS` end: afterok:NAME, afterany:NAME; comma separated")
	fs.StringVar(&f.buy.id, "id", "", "`ID` of the purchase; reusing an ID resumes that job (default: random)")
}

// arguments accepts FILE, or flags instead, and a command after '--'.
func (f *runFlags) arguments(c *cobra.Command, args []string) error {
	if file, _ := runWords(c, args); len(file) > 0 {
		return cli.EmptyFlags(c)
	}
	return f.buy.request.FileOr(c, nil)
}

// read takes the command, and reads FILE.
func (f *runFlags) read(c *cobra.Command, args []string) error {
	file, command := runWords(c, args)
	if len(command) > 0 {
		f.run.Commands = [][]string{command}
	}
	if len(file) == 0 {
		return nil
	}
	given := f.buy.request.Given()
	text, err := requestText(c, file)
	if err != nil && given {
		return misplaced(c, file[0])
	}
	if err != nil {
		return err
	}
	if order.IsJob(text) {
		return f.job(c, file, command, text)
	}
	f.file, f.text = file[0], text
	if len(file) > 1 || given && len(command) == 0 && f.run.App == "" {
		return misplaced(c, file[len(file)-1])
	}
	return exit.WithCode(exit.Usage, f.buy.request.FileOr(c, file))
}

func misplaced(c *cobra.Command, word string) error {
	return exit.Fail(exit.Usage, "such as "+c.CommandPath()+" -n 4 -t 10m -- ./program", "%q: the command comes after '--'", word)
}

// job takes a job file, or a script and its arguments.
func (f *runFlags) job(c *cobra.Command, file, command []string, text []byte) error {
	job, err := f.buy.request.JobFile(c, newUserRun().Flags(), file[0], text)
	switch {
	case err != nil:
		return err
	case job.Script && file[0] == "-":
		return exit.Fail(exit.Usage, "", "a script is uploaded from a file, not from standard input")
	case job.Script:
		f.run.Script, f.run.Commands = file[0], [][]string{append(append([]string{file[0]}, file[1:]...), command...)}
	case len(file) > 1:
		return misplaced(c, file[1])
	case len(command) == 0:
		f.run.Commands = job.Commands
	}
	f.buy.unnamed = strings.TrimSuffix(filepath.Base(file[0]), filepath.Ext(file[0]))
	if !f.buy.request.Given() {
		return exit.Fail(exit.Usage, "such as '#RAMP -n 4 -t 10m' in a script, or -n 4 -t 10m on the command line; '#SBATCH' lines are not read", "%s does not say what to buy", file[0])
	}
	return nil
}

// runWords are the words before '--' and those after it.
func runWords(c *cobra.Command, args []string) (file, command []string) {
	at := c.ArgsLenAtDash()
	if at < 0 {
		return args, nil
	}
	return args[:at], args[at:]
}

// prepare checks the command line before anything is asked.
func (f *runFlags) prepare() (after []order.After, err error) {
	if f.run.Array != "" {
		if f.array, err = jobfile.ParseArray(f.run.Array); err == nil && f.text != nil {
			err = fmt.Errorf("describe the request in flags or a job file")
		}
		if err != nil {
			return nil, exit.Fail(exit.Usage, "", "--array: %w", err)
		}
		f.slots = 1
	}
	if err := node.CheckOut(f.out); err != nil {
		return nil, err
	}
	return order.ParseAfter(f.run.After)
}

// order makes an order: what to buy now, and what to run in it.
func (f *runFlags) order(id string) (control.BuyCall, error) {
	q := &f.buy.request
	q.Anew()
	request, file := string(f.text), []string{f.file}
	var wall time.Duration
	if f.text == nil { // flags make a different document each time: compare them instead
		request, file = fmt.Sprintf("%q %q", q.Words(), f.run.Array), nil
		q.Begin = beginWithin
		f.buy.unnamed = cmp.Or(f.buy.unnamed, f.programName())
	}
	if f.slots > 0 {
		var err error
		if wall, _, err = q.Index(); err != nil {
			return control.BuyCall{}, err
		}
		q.Slots, q.Turns = f.slots, (len(f.array.Indexes)+f.slots-1)/f.slots
	}
	call, err := ordersOf(f.text, file, f.buy)(id)
	if err != nil {
		return call, err
	}
	if call.Program, f.upload, err = f.run.Program(request); err != nil {
		return call, err
	}
	call.Program.Detached, call.Program.Key = f.detach, again.SessionKey(call.Program.Key, control.Session())
	if f.slots > 0 {
		call.Follows = true // the number of its slots depends on the market
		if call.Program, err = order.Divide(*call.Program, f.array, f.slots, wall); err != nil {
			return call, err
		}
	}
	return call, node.Launchable(call.ID, call.Program)
}

// programName is the name of a request that has none.
func (f *runFlags) programName() string {
	if len(f.run.Commands) == 0 {
		return f.run.App
	}
	return filepath.Base(f.run.Commands[0][0])
}

func runRun(c *cobra.Command, args []string, f *runFlags) error {
	if err := f.read(c, args); err != nil {
		return err
	}
	f.buy.confirm = cli.CanAsk(c) && f.buy.wait == 0 && !f.buy.yes
	after, err := f.prepare()
	if err != nil {
		return err
	}
	id := f.buy.firstID()
	call, err := f.order(id)
	if err != nil {
		return err
	}
	accepts, err := f.buy.consent(call)
	if err != nil {
		return err
	}
	agent, closeAgent, err := cli.OpenUserServing(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	if err := order.Await(c.Context(), agent, after, cli.ProgressOf(c).Say); err != nil {
		return err
	}
	if f.slots > 0 {
		if err := f.share(c, agent); err != nil {
			return err
		}
	}
	if len(after) > 0 || f.slots > 0 {
		f.buy.request.Now()
		if call, err = f.order(id); err != nil {
			return err
		}
	}
	if f.upload != "" {
		cli.ProgressOf(c).Say("uploading " + f.upload)
	}
	return f.attempts(c, agent, f.elsewhere(c, agent, call), accepts)
}

// share decides in how many slots an array runs.
func (f *runFlags) share(c *cobra.Command, agent *control.Client) (err error) {
	_, cores, _ := f.buy.request.Index() // it was checked
	if f.slots, err = order.Slots(c.Context(), agent, f.array, cores); err != nil {
		return err
	}
	most := f.slots
	f.slots, err = order.Fewer(c.Context(), agent, most, func(slots int) (control.BuyCall, error) {
		f.slots = slots
		f.buy.request.Now()
		return f.order(control.NewPurchaseID(true))
	})
	if f.slots < most {
		cli.ProgressOf(c).Say(fmt.Sprintf("running %d indexes in %s: any more would begin later", len(f.array.Indexes), words.Plural(f.slots, "slot")))
	}
	return err
}

// elsewhere asks, where a person can answer, whether to continue a job of the same command that
// was interrupted in another session; otherwise it mentions the job and buys another.
func (f *runFlags) elsewhere(c *cobra.Command, agent *control.Client, call control.BuyCall) control.BuyCall {
	var found control.IDsFound
	if f.detach || !call.Resume || call.Named {
		return call
	}
	if err := control.Find.Ask(c.Context(), agent, control.FindCall{Interrupted: call.Program.Key}, &found); err != nil || found.All == 0 {
		return call // a daemon from before an upgrade finds nothing
	}
	id := found.IDs[len(found.IDs)-1]
	short := cli.ShortID(agent, id)
	if f.buy.confirm {
		answer := cli.Answer(c, fmt.Sprintf("%s, the same command, was interrupted in another session and goes on.\nContinue it here (y), or buy another (Enter)? ", short))
		if strings.HasPrefix(strings.ToLower(answer), "y") {
			call.ID, call.Named, call.Follows = id, true, true
		}
		return call
	}
	fmt.Fprintf(cli.Notes(c), "%s, the same command in another session, goes on ('ramp logs -f %s'); this is another job\n", short, short)
	return call
}

// attempts buys and runs, and again while the program fails and --retry allows it. Each attempt
// has an ID of its own, so that the command can be repeated.
func (f *runFlags) attempts(c *cobra.Command, agent *control.Client, call control.BuyCall, accepts consent) error {
	all, results, first := f.array, map[int]int{}, ""
	var shown []string
	for n := 1; ; n++ {
		w, err := f.buyAndRun(c, agent, call, accepts)
		if err != nil || w == nil {
			return err
		}
		first, shown = cmp.Or(first, w.id), append(shown, w.id)
		maps.Copy(results, order.Results(w.run))
		f.array = order.Left(all, results)
		if !f.again(w.run, n) {
			if f.slots > 0 {
				to := cli.Notes(c)
				if len(f.array.Indexes) > 0 {
					to = cli.Stderr(c) // an error
				}
				fmt.Fprintf(to, "%s: %s\n", w.name, order.Summary(all, results))
			}
			return w.result(shown)
		}
		fmt.Fprintf(cli.Notes(c), "%s: failed (exit code %d); buying it again, %d of %d\n", w.name, w.run.Exit, n, f.run.Retry)
		f.slots = min(f.slots, len(f.array.Indexes))
		if call, err = f.order(fmt.Sprintf("%s.retry%d", first, n)); err != nil {
			return err
		}
		call.Resume, call.Named, call.Follows = true, true, true
		call.Program.Key += fmt.Sprintf(".retry%d", n)
	}
}

// again reports whether a program that has ended is to be bought again: it failed, and not
// because its owner killed it.
func (f *runFlags) again(run message.Run, n int) bool {
	return n <= f.run.Retry && run.Exit != 0 && !(run.Killing && run.Exit == protocol.ExitKilled)
}

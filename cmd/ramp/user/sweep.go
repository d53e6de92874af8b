package user

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql/jobfile"
)

// sweepFlags change what a plan says.
type sweepFlags struct {
	out, id, deadline, budget, strategy string
	dFactor, bFactor                    float64
	dry                                 bool
}

func newUserSweep() *cobra.Command {
	var q sweepFlags
	c := &cobra.Command{
		Use: "sweep PLAN", Short: "Run many tasks within a deadline and a budget", GroupID: "run", Args: cobra.ExactArgs(1),
		Long: `Run a program once for every combination of parameters, on the sites whose live prices suit the
strategy, within a deadline and a budget. PLAN is a YAML file or a Slurm script with
#SBATCH --array, or - for standard input; docs/SWEEPS.md shows how to write one. --dry-run shows
what each strategy would cost and buys nothing.

The agent continues if this command is interrupted. The same command on the same plan and inputs
continues the same sweep. The outputs of a task appear in DIR/task-00001, and results.csv
lists all tasks. Ends with 0 if all tasks are done, 1 if some failed permanently, and 3 if some
could not start.`,
		Example: "  ramp user sweep wing.yaml --out results --dry-run\n  ramp user sweep wing.yaml --out results --deadline 6h --budget 50",
		PreRunE: func(c *cobra.Command, _ []string) error { return cli.EmptyFlags(c) },
		RunE:    func(c *cobra.Command, args []string) error { return runSweep(c, args[0], &q) },
	}
	f := c.Flags()
	f.StringVarP(&q.out, "out", "o", "", "write outputs to `DIR` (default: the name of the plan)")
	f.StringVar(&q.id, "id", "", "`ID` of the sweep (default: one of the plan, its inputs and DIR)")
	f.StringVar(&q.deadline, "deadline", "", "end within a time (6h) or by a `TIME`")
	f.StringVar(&q.budget, "budget", "", "spend at most `CREDITS`")
	f.StringVar(&q.strategy, "strategy", "", "`NAME` of the strategy: cost-time, cost, time, conservative-time or none")
	f.Float64Var(&q.dFactor, "d-factor", 0, "a deadline between the earliest (0) and all tasks one after the other (1)")
	f.Float64Var(&q.bFactor, "b-factor", 0, "a budget between that of the cheapest sites first (0) and of the dearest first (1)")
	f.BoolVar(&q.dry, "dry-run", false, "show what each strategy would cost, and buy nothing")
	cli.Choices(c, "strategy", "cost-time", "cost", "time", "conservative-time", "none")
	return c
}

func readPlan(c *cobra.Command, path string, q *sweepFlags, now time.Time) (*plan.Plan, error) {
	doc, err := words.ReadInput(c.Context(), c.InOrStdin(), path, control.MaxControlBody)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if path == "-" {
		path = "stdin"
	}
	p, err := plan.Parse(path, doc, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return words.ReadInput(c.Context(), nil, name, jobfile.MaxFile)
	})
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Err: err, Hint: "docs/SWEEPS.md shows a plan"}
	}
	if q.deadline != "" {
		if err := p.SetDeadline(q.deadline); err != nil {
			return nil, exit.Fail(exit.Usage, "", "--deadline %w", err)
		}
	}
	if q.budget != "" {
		if p.Budget, err = cli.AmountOf("--budget", q.budget); err != nil {
			return nil, err
		}
	}
	if q.strategy != "" {
		if p.Strategy, err = sweep.ParseStrategy(q.strategy); err != nil {
			return nil, exit.Fail(exit.Usage, "", "--strategy: %w", err)
		}
	}
	if !(q.dFactor >= 0 && q.dFactor <= 1) {
		return nil, exit.Fail(exit.Usage, "", "--d-factor %g: want 0..1", q.dFactor)
	}
	if !(q.bFactor >= 0 && q.bFactor <= 1) {
		return nil, exit.Fail(exit.Usage, "", "--b-factor %g: want 0..1", q.bFactor)
	}
	due, err := p.Due(now)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if p.Deadline == 0 {
		p.DeadlineAt, p.Zoneless = due, false
	}
	return p, order.SweepFiles(p, dir)
}

func runSweep(c *cobra.Command, path string, q *sweepFlags) error {
	for _, pair := range [][2]string{{"deadline", "d-factor"}, {"budget", "b-factor"}} {
		if err := cli.OneOf(c, pair[0], pair[1]); err != nil {
			return err
		}
	}
	p, err := readPlan(c, path, q, time.Now())
	if err != nil {
		return err
	}
	for _, option := range p.Ignored {
		fmt.Fprintf(cli.Notes(c), "%s: %s has no effect in a sweep\n", path, option)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	out := cmp.Or(q.out, p.Name)
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	agent, done, err := cli.OpenUserServing(c)
	if err != nil {
		return err
	}
	defer done()
	call := control.SweepCall{ID: q.id, Out: out, Dir: dir}
	if err := applyFactors(c, agent, call, p, q); err != nil {
		return err
	}
	if q.dry {
		v, err := forecast(c, agent, call, p)
		if err != nil {
			return err
		}
		return showForecast(c, v, p)
	}
	v, err := orderSweep(c, agent, call, p)
	if err != nil {
		return err
	}
	return watchSweep(c, agent, v)
}

func orderSweep(c *cobra.Command, agent *control.Client, q control.SweepCall, p *plan.Plan) (v message.Sweep, err error) {
	if q.Plan, err = json.Marshal(p); err == nil {
		err = control.Sweep.Ask(c.Context(), agent, q, &v)
	}
	return v, err
}

// forecast is what each strategy would do.
func forecast(c *cobra.Command, agent *control.Client, q control.SweepCall, p *plan.Plan) (message.Sweep, error) {
	q.DryRun = true
	v, err := orderSweep(c, agent, q, p)
	if err == nil && len(v.Resources) == 0 {
		err = exit.Fail(exit.Nothing, "'ramp user resources' lists the sites", "no site makes an offer: %s", v.Why)
	}
	return v, err
}

func showForecast(c *cobra.Command, v message.Sweep, p *plan.Plan) error {
	return cli.Show(c, v, func(w io.Writer) {
		fmt.Fprintf(w, "%s of %s at most, %s each\n", words.Plural(v.Tasks.Total, "task"), p.Wall, words.Plural(p.Cores, "core"))
		rows := [][]string{{"strategy", "cost", "ends (" + words.Zone() + ")", "left"}}
		for _, s := range v.Strategies {
			rows = append(rows, []string{s.Strategy, s.Cost.Cents(), words.Timestamp(s.Finish), strconv.Itoa(s.Left)})
		}
		cli.Table(w, rows...)
		cli.Table(w, forecastRows(v)...)
		if v.LeastBudget > 0 {
			fmt.Fprintf(w, "least budget for this deadline: %s\n", v.LeastBudget.Cents())
		}
		if !v.LeastDeadline.IsZero() {
			fmt.Fprintf(w, "earliest deadline for this budget: %s\n", words.At(v.LeastDeadline))
		}
	})
}

// applyFactors sets the deadline between the earliest and that of all tasks one after the other, and then
// the budget between those of the cheapest and of the dearest sites first for this deadline (004, section 4).
func applyFactors(c *cobra.Command, agent *control.Client, call control.SweepCall, p *plan.Plan, q *sweepFlags) error {
	n := p.Len()
	if c.Flags().Changed("d-factor") {
		v, err := forecast(c, agent, call, p)
		if err != nil {
			return err
		}
		if v.LeastDeadline.IsZero() {
			return exit.Fail(exit.Nothing, "", "--d-factor: no deadline is enough for this budget")
		}
		least := time.Until(v.LeastDeadline)
		most := max(least, time.Duration(n)*p.Wall)
		p.Deadline, p.DeadlineAt, p.DFactor = least+time.Duration(q.dFactor*float64(most-least)), time.Time{}, &q.dFactor
	}
	if c.Flags().Changed("b-factor") {
		p.Budget = 0
		v, err := forecast(c, agent, call, p)
		if err != nil {
			return err
		}
		if v.LeastBudget == 0 {
			return exit.Fail(exit.Nothing, "", "--b-factor: no budget is enough for this deadline")
		}
		p.Budget, p.BFactor = v.LeastBudget+protocol.Credits(q.bFactor*float64(v.MostBudget-v.LeastBudget)), &q.bFactor
	}
	return nil
}

// sweepPause is between looks at a sweep that is watched.
const sweepPause = 500 * time.Millisecond

// watchSweep follows a sweep until it needs nothing more, or nothing more can be done: on a terminal with
// a table, elsewhere with a line for each tenth of its tasks.
func watchSweep(c *cobra.Command, agent *control.Client, v message.Sweep) error {
	progress := cli.ProgressOf(c)
	defer progress.End()
	progress.Say(fmt.Sprintf("sweep %s: %s, results in %s; Ctrl-C stops watching only", v.ID, words.Plural(v.Tasks.Total, "task"), v.Out))
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	stage := ""
	for v.State == "running" || v.State == "paused" {
		progress.Screen(func(w io.Writer) { printSweep(w, v) })
		if now := fmt.Sprint(v.State, v.Tasks.Done*10/v.Tasks.Total, v.Tasks.Failed, v.Why); now != stage && !progress.Live {
			stage = now
			progress.Say(sweepLine(v))
		}
		select {
		case <-tick.C:
		case <-c.Context().Done():
			return stoppedWatching(agent, v.ID)
		}
		if err := control.SweepShow.Ask(c.Context(), agent, control.IDCall{ID: v.ID}, &v); err != nil {
			if c.Context().Err() != nil {
				return stoppedWatching(agent, v.ID)
			}
			return err
		}
	}
	progress.End()
	if err := showSweep(c, v); err != nil {
		return err
	}
	return sweepCode(v)
}

func stoppedWatching(agent *control.Client, id string) error {
	if !agent.Daemon {
		return exit.Fail(exit.Failed, "'ramp user serve' continues it", "interrupted; the sweep continues once the agent's daemon runs")
	}
	return exit.Fail(exit.Failed, "'ramp user sweeps show "+id+" --watch' watches it, 'ramp user sweeps kill "+id+"' ends it", "interrupted; the sweep goes on")
}

// sweepCode is the error with which a command about a sweep ends; nil: all tasks are done.
func sweepCode(v message.Sweep) error {
	switch v.State {
	case "done":
		return nil
	case "short":
		return exit.Fail(exit.Nothing, "", "%s", v.Why)
	case "killed":
		return exit.Fail(exit.Failed, "", "the sweep was killed with %d of %d tasks done", v.Tasks.Done, v.Tasks.Total)
	}
	return exit.Fail(exit.Failed, "", "%s", v.Why)
}

func sweepLine(v message.Sweep) string {
	t := v.Tasks
	line := fmt.Sprintf("%d of %d done, %d running, %d failed; %s spent, %s committed", t.Done, t.Total, t.Running, t.Failed, v.Spent.Cents(), v.Committed.Cents())
	switch {
	case v.Waits != "":
		line += "; " + v.Waits
	case v.State == "running" && v.Why != "":
		line += "; last: " + v.Why
	}
	return line
}

func showSweep(c *cobra.Command, v message.Sweep) error {
	return cli.Show(c, v, func(w io.Writer) { printSweep(w, v) })
}

func printSweep(w io.Writer, v message.Sweep) {
	fmt.Fprintf(w, "%s  %s  %s\n%s\n", v.ID, v.State, v.Strategy, words.ForPeople(sweepLine(v)))
	budget, deadline := "no budget", "no deadline"
	if v.Budget > 0 {
		budget = fmt.Sprintf("budget %s %s", v.Budget.Cents(), v.Currency)
	}
	if v.Deadline.Sub(v.Created) < sweeper.NoDeadline {
		deadline = "deadline " + words.At(v.Deadline)
	}
	if left := v.Tasks.Total - v.Tasks.Done - v.Tasks.Failed; left > 0 && v.State != "killed" {
		budget += fmt.Sprintf(", expected cost %s %s", v.Predicted.Cost.Cents(), v.Currency)
		if !v.Predicted.Finish.IsZero() {
			deadline += ", expected end " + words.At(v.Predicted.Finish)
		}
	}
	fmt.Fprintf(w, "%s\n%s\n", budget, deadline)
	cli.Table(w, resourceRows(v)...)
}

// forecastRows are what each site would get.
func forecastRows(v message.Sweep) [][]string {
	rows := [][]string{{"resource", "group", "price", "a task", "lanes", "per hour", "tasks"}}
	for _, r := range v.Resources {
		rows = append(rows, []string{r.Resource, strconv.Itoa(r.Group), r.Price.Cents(), cents(r.CostTask), strconv.Itoa(r.Lanes), perHour(r), strconv.Itoa(r.Assigned)})
	}
	return rows
}

// resourceRows are what each site does, and has done.
func resourceRows(v message.Sweep) [][]string {
	rows := [][]string{{"resource", "a task", "per hour", "to do", "running", "done", "failed", "spent"}}
	for _, r := range v.Resources {
		rows = append(rows, []string{r.Resource, cents(r.CostTask), perHour(r), strconv.Itoa(r.Assigned), strconv.Itoa(r.Running), strconv.Itoa(r.Done), strconv.Itoa(r.Failed), cents(r.Spent)})
	}
	return cli.WithoutZeros(rows)
}

// perHour is how many tasks a site does in an hour, at least while none has been measured.
func perHour(r message.SweepResource) string {
	if r.Measured {
		return fmt.Sprintf("%.1f", r.RateHour)
	}
	return fmt.Sprintf("≥ %.1f", r.RateHour)
}

// cents prints an amount with two decimals, also one that rounds to nothing.
func cents(c protocol.Credits) string {
	if c > 0 && c < protocol.Credit/200 {
		return "<0.01"
	}
	return c.Cents()
}

package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"

	"ramp/agents/sim"
	"ramp/agents/sim/dbc"
	"ramp/agents/sim/market"
	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The live experiment: 004's jobs as tasks of a sweep on live agents, whose lengths nobody knows.
const (
	sweepSeeds = 3
	sweepUnit  = 2 * time.Second  // a time unit of 004: a job takes most of a minute
	sweepMoney = 10               // G$ to a credit: prices of core-hours have a bound
	sweepWall  = 70 * time.Second // above the longest job
	sweepEqual = 500              // measured rates of equal processors differ by a few percent
)

func sweepDeadlines() []int { return []int{600, 1600, 3100} }

// sweepCase is a run.
type sweepCase struct {
	strategy sweep.Strategy
	deadline int
	faults   bool
	seed     int
}

// swept is what a sweep reached.
type swept struct {
	sweepCase
	done       int
	ends       float64 // in time units
	spent      float64
	used       float64 // what the run times of its tasks alone cost
	per        []int   // tasks done, by resource
	attempts   int
	crashes    int64
	violations []market.Violation
	over       []float64 // seconds that tasks took longer than they ran
}

// sweepRun makes 004's table with live agents.
func sweepRun(ctx context.Context, l *Lab, r *Result) error {
	var cases []sweepCase
	for _, faults := range []bool{false, true} {
		for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime, sweep.Time, sweep.ConservativeTime} {
			for _, d := range sweepDeadlines() {
				for seed := range l.repeat(sweepSeeds) {
					if seed == 0 || s == sweep.Cost || s == sweep.CostTime {
						cases = append(cases, sweepCase{s, d, faults, seed})
					}
				}
			}
		}
	}
	l.issue(1, each(dbc.Table1(), func(x dbc.Resource) seller { return seller{name: hostOf(x)} }))
	out, err := gather(ctx, l, "sweeps", len(cases), func(i int) swept { return l.swept(cases[i]) })
	t := Table{Name: "runs", About: "Every run", Columns: []string{"strategy", "deadline", "faults", "seed", "done", "time", "spent", "used", "attempts", "crashes", "violations"}}
	for _, x := range dbc.Table1() {
		t.Columns = append(t.Columns, x.Name)
	}
	for _, o := range out {
		t.Rows = append(t.Rows, o.row())
	}
	r.table(t)
	if err != nil {
		return err
	}
	s := sweepReport{r, out}
	s.means()
	s.figure()
	s.shapes()
	return nil
}

// hostOf is the name of a resource of table 1 as a site.
func hostOf(x dbc.Resource) string {
	i := slices.IndexFunc(dbc.Table1(), func(y dbc.Resource) bool { return x.Name == y.Name })
	return market.SiteName(i + 1)
}

// troubled are faults that a sweep of an hour or two meets often, and jobs of local users.
func troubled() sim.Faults {
	f := sim.Levels()["light"]
	f.Loss, f.Stalls = sim.Range{Least: 10, Most: 50}, sim.Range{Least: 10, Most: 50}
	f.Crashes, f.Down, f.Outages = sim.Range{Least: 20, Most: 100}, sim.Span{Least: time.Second, Most: time.Minute}, sim.Range{Least: 12, Most: 48}
	f.QueueDown, f.QueueAway = sim.Range{Least: 6, Most: 24}, sim.Span{Least: 10 * time.Second, Most: 2 * time.Minute}
	f.LocalJobs = sim.Range{Least: 12, Most: 48}
	return f
}

// swept has a user run 004's jobs on its resources, by live agents, contracts and a bank.
func (l *Lab) swept(c sweepCase) swept {
	lengths := dbc.Jobs(l.seed(c.seed))
	cfg := market.Default()
	cfg.Seed, cfg.Users, cfg.Rate, cfg.Faults = l.seed(c.seed), 1, 0, troubled()
	if !c.faults {
		cfg.Faults = sim.Levels()["none"]
		cfg.Faults.LocalJobs = sim.Range{}
	}
	for _, x := range dbc.Table1() {
		cfg.Machines = append(cfg.Machines, machineOf(x, lengths))
	}
	cfg.Resources, cfg.Length = len(cfg.Machines), time.Minute+time.Duration(c.deadline)*sweepUnit
	m, checks := market.Open(l.cast, cfg)
	m.World.Run(30 * time.Second) // all have announced themselves
	begun := m.World.Elapsed()
	id := m.Users()[0].Sweep(planOf(c, len(lengths)))
	m.Live(checks, nil)
	o := swept{sweepCase: c, crashes: m.World.Stats().Crashes, violations: checks.Violations(), per: make([]int, len(dbc.Table1()))}
	if sweeps := m.Users()[0].Sweeps(); sweeps != nil {
		view, _ := sweeps.Show(m.World.Now(), id)
		tasks, _ := sweeps.Tasks(id)
		o.done, o.spent = view.Tasks.Done, sweepMoney*price(view.Spent)
		o.read(tasks, lengths, market.Dawn.Add(begun))
	}
	return o
}

// machineOf is a resource of table 1, on which a task takes as long as its length says.
func machineOf(x dbc.Resource, lengths []int64) market.Machine {
	return market.Machine{
		Cores: x.PEs, Price: x.Price * protocol.Credits(time.Hour/sweepUnit) / sweepMoney,
		Jobs: func(_ time.Time, job message.Job) (time.Duration, int, bool) {
			if len(job.Argv) != 2 || job.Argv[0] != market.Task {
				return 0, 0, false
			}
			n, err := strconv.Atoi(job.Argv[1])
			if err != nil || n < 0 || n >= len(lengths) {
				return 0, 1, true
			}
			return runTime(x, lengths[n]), 0, true
		},
	}
}

func planOf(c sweepCase, tasks int) plan.Plan {
	values := make([]string, tasks)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	return plan.Plan{
		Name: "dbc", Axes: []plan.Axis{{Name: "job", Values: values}}, Cores: 1, Wall: sweepWall, Command: []string{market.Task, "${job}"},
		Deadline: time.Duration(c.deadline) * sweepUnit, Budget: dbcBudget * protocol.Credit / sweepMoney, Strategy: c.strategy, Equal: sweepEqual, RetrySite: 20,
	}
}

// read adds what became of the tasks.
func (o *swept) read(tasks []message.SweepTask, lengths []int64, begun time.Time) {
	for i, t := range tasks {
		n := len(t.Attempts)
		if o.attempts += n; n == 0 || t.State != sweep.Done.String() {
			continue
		}
		a := t.Attempts[n-1]
		at := slices.IndexFunc(dbc.Table1(), func(x dbc.Resource) bool { return hostOf(x) == a.Resource })
		x, took := dbc.Table1()[at], a.Ended.Sub(a.Started)
		o.per[at]++
		o.ends = max(o.ends, float64(a.Ended.Sub(begun))/float64(sweepUnit))
		o.used += float64(took) / float64(sweepUnit) * price(x.Price)
		o.over = append(o.over, (took - runTime(x, lengths[i])).Seconds())
	}
}

// runTime is how long a job of 004 runs on a resource.
func runTime(x dbc.Resource, length int64) time.Duration {
	return time.Duration(float64(length) / float64(x.MIPS) * float64(sweepUnit))
}

func (o swept) row() []string {
	row := []string{string(o.strategy), fmt.Sprint(o.deadline), fmt.Sprint(o.faults), fmt.Sprint(o.seed), fmt.Sprint(o.done), num(o.ends, 1), num(o.spent, 1), num(o.used, 1), fmt.Sprint(o.attempts), fmt.Sprint(o.crashes), fmt.Sprint(len(o.violations))}
	return append(row, each(o.per, func(n int) string { return fmt.Sprint(n) })...)
}

// sweepReport is the result while it is evaluated.
type sweepReport struct {
	*Result
	runs []swept
}

// over is a figure of all runs of a case.
func (r sweepReport) over(s sweep.Strategy, deadline int, faults bool, of func(swept) float64) []float64 {
	var list []float64
	for _, o := range r.runs {
		if o.strategy == s && o.deadline == deadline && o.faults == faults {
			list = append(list, of(o))
		}
	}
	return list
}

func sweptDone(o swept) float64  { return float64(o.done) }
func sweptEnds(o swept) float64  { return o.ends }
func sweptSpent(o swept) float64 { return o.spent }

// share is the share of tasks done on some resources.
func share(names ...string) func(swept) float64 {
	return func(o swept) float64 {
		n := 0
		for i, x := range dbc.Table1() {
			if slices.Contains(names, x.Name) {
				n += o.per[i]
			}
		}
		return float64(n) / float64(max(1, o.done))
	}
}

func (r sweepReport) means() {
	t := Table{Name: "means", About: "Means over seeds; used is what the run times of the tasks alone cost", Shown: true, Columns: []string{"strategy", "deadline", "faults", "done", "time", "spent", "used", "R4", "R8", "R10", "R2, R3", "others"}}
	for _, faults := range []bool{false, true} {
		for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime, sweep.Time, sweep.ConservativeTime} {
			for _, d := range sweepDeadlines() {
				of := func(f func(swept) float64) float64 { return mean(r.over(s, d, faults, f)) }
				row := []string{string(s), fmt.Sprint(d), fmt.Sprint(faults), num(of(sweptDone), 1), num(of(sweptEnds), 0), num(of(sweptSpent), 0), num(of(func(o swept) float64 { return o.used }), 0)}
				for _, names := range [][]string{{"R4"}, {"R8"}, {"R10"}, {"R2", "R3"}, {"R0", "R1", "R5", "R6", "R7", "R9"}} {
					row = append(row, num(100*of(share(names...)), 0)+" %")
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	r.table(t)
}

// figure shows when sweeps end and what they spend, beside the planner that knows the lengths.
func (r sweepReport) figure() {
	var tiles []*plot.Plot
	for _, f := range []struct {
		what string
		of   func(swept) float64
	}{{"time", sweptEnds}, {"spent", sweptSpent}} {
		p := tile("Live sweeps, budget 22,000: " + f.what)
		p.X.Label.Text, p.Y.Label.Text = "deadline", f.what
		for i, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
			for j, faults := range []bool{false, true} {
				line := series{name: string(s) + map[bool]string{true: ", faults"}[faults], style: 2*i + j, dashed: faults}
				for _, d := range sweepDeadlines() {
					line = line.sampled(float64(d), r.over(s, d, faults, f.of))
				}
				add(p, line)
			}
		}
		p.Y.Min = 0
		roof(p, .3)
		tiles = append(tiles, p)
	}
	r.tiles("sweep", "When live sweeps end and what they spend, by deadline, with and without faults.", 2, tiles)
}

func (r sweepReport) shapes() {
	least := func(list []float64) float64 { return slices.Min(list) }
	for _, faults := range []bool{false, true} {
		name := map[bool]string{true: " under faults"}[faults]
		broken, late, dear := 0, math.Inf(-1), 0.0
		for _, o := range r.runs {
			if o.faults == faults {
				broken += len(o.violations)
				late, dear = max(late, o.ends-float64(o.deadline)), max(dear, o.spent)
			}
		}
		r.shape("no invariant is broken"+name, broken == 0, fmt.Sprintf("%d times", broken), "0 times")
		r.shape("no task ends late, and no sweep spends more than its budget"+name, late <= 0 && dear <= dbcBudget, fmt.Sprintf("%.0f units early, %.0f spent", -late, dear), "0 or more, 22,000")
		for _, d := range sweepDeadlines() {
			a, b := least(r.over(sweep.Cost, d, faults, sweptDone)), least(r.over(sweep.CostTime, d, faults, sweptDone))
			want := 200.0
			if d == 600 {
				want = 198 // there is hardly time to spare
			}
			r.shape(fmt.Sprintf("tasks are done by %d%s", d, name), min(a, b) >= want, fmt.Sprintf("%.0f and %.0f at least", a, b), num(want, 0))
		}
		for _, d := range []int{1600, 3100} {
			a, b := mean(r.over(sweep.Cost, d, faults, sweptEnds)), mean(r.over(sweep.CostTime, d, faults, sweptEnds))
			r.shape(fmt.Sprintf("cost-time ends before cost: %d%s", d, name), b < a, fmt.Sprintf("at %.0f and %.0f", b, a), "earlier")
		}
	}
	r.compared()
}

// compared compares sweeps without faults with the table of 004.
func (r sweepReport) compared() {
	of := func(s sweep.Strategy, d int, f func(swept) float64) float64 { return mean(r.over(s, d, false, f)) }
	for _, d := range []int{1600, 3100} {
		end := of(sweep.CostTime, d, sweptEnds)
		r.shape(fmt.Sprintf("cost-time ends as early as R4 and R8 can: %d", d), end > 1300 && end < 1600, num(end, 0), "1,380 to 1,395, or up to 15 % later")
	}
	on := of(sweep.Cost, 3100, share("R4"))
	r.shape("at 3,100 cost uses R4 alone", on > .9, num(100*on, 0)+" % of the tasks", "nearly all")
	both := of(sweep.CostTime, 1600, share("R4", "R8"))
	r.shape("at 1,600 cost-time uses R4 and R8", both > .9, num(100*both, 0)+" % of the tasks", "nearly all")
	some := of(sweep.Cost, 600, share("R4", "R8", "R10", "R2", "R3"))
	r.shape("at 600 cost uses what costs least", some > .9, num(100*some, 0)+" % of the tasks on R4, R8, R10, R2, R3", "nearly all")
	for _, d := range sweepDeadlines() {
		a, b := of(sweep.Cost, d, sweptSpent), of(sweep.CostTime, d, sweptSpent)
		r.shape(fmt.Sprintf("cost and cost-time spend about the same: %d", d), math.Abs(a-b) < .1*a, fmt.Sprintf("%.0f and %.0f", a, b), "within 10 %")
	}
	r.fact("spent, deadlines 600, 1,600 and 3,100", fmt.Sprintf("%.0f, %.0f, %.0f", of(sweep.Cost, 600, sweptSpent), of(sweep.Cost, 1600, sweptSpent), of(sweep.Cost, 3100, sweptSpent)), "12,000, 5,530, 5,530 where lengths are known and only run time is paid")
	var over []float64
	for _, o := range r.runs {
		if !o.faults {
			over = append(over, o.over...)
		}
	}
	slices.Sort(over)
	r.fact("a task takes longer than it runs, median and 95 % (s)", num(median(over), 2)+", "+num(over[len(over)*95/100], 2), "0")
	r.note("Rates are measured, so of two resources that cost the same, now one and now the other is the cheaper: cost does not keep to R4 at 3,100.")
	r.note("At 600 a task may be left without a place, since its longest run time is reserved.")
	r.note("A time unit of 004 is %s here. The agents know no lengths: they measure the first tasks, reserve half as much again as the longest took, and pay leases whole.", sweepUnit)
}

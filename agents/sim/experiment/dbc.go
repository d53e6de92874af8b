package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"ramp/agents/sim/dbc"
	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// The deadlines, budgets and seeds of 004's figures.
const (
	dbcSeeds  = 5
	dbcBudget = 22_000 // pays for everything
)

func dbcDeadlines() []int { return steps(100, 3600, 500) }
func dbcBudgets() []int   { return steps(5_000, 22_000, 1_000) }

func steps(from, to, by int) []int {
	var list []int
	for x := from; x <= to; x += by {
		list = append(list, x)
	}
	return list
}

// dbcKey is a problem, and dbcRuns what was reached.
type dbcKey struct {
	strategy         sweep.Strategy
	deadline, budget int
	seed             int
}

type dbcRuns map[dbcKey]dbc.Outcome

// dbcReport is the result while its figures are made.
type dbcReport struct {
	*Result
	runs  dbcRuns
	seeds int
}

// dbcRun makes the figures of 004: jobs done, time and budget spent by deadline and budget.
func dbcRun(ctx context.Context, l *Lab, r *Result) error {
	var keys []dbcKey
	for _, s := range sweep.Strategies() {
		for _, d := range dbcDeadlines() {
			for _, b := range dbcBudgets() {
				for seed := range l.repeat(dbcSeeds) {
					keys = append(keys, dbcKey{s, d, b, seed})
				}
			}
		}
	}
	out, err := gather(ctx, l, "schedules", len(keys), func(i int) dbc.Outcome { return l.dbc(keys[i], nil) })
	runs := dbcRuns{}
	t := Table{Name: "runs", About: "Every run", Columns: []string{"strategy", "deadline", "budget", "seed", "done", "time", "spent"}}
	for _, x := range dbc.Table1() {
		t.Columns = append(t.Columns, x.Name)
	}
	for i, o := range out {
		runs[keys[i]] = o
		t.Rows = append(t.Rows, dbcRow(keys[i], o))
	}
	r.table(t)
	if err != nil {
		return err
	}
	f := dbcReport{r, runs, l.repeat(dbcSeeds)}
	f.surfaces()
	f.selections()
	f.compared()
	f.traces(l)
	f.shapes()
	f.reference()
	f.facts()
	return nil
}

// dbc runs one problem.
func (l *Lab) dbc(k dbcKey, watch func(time.Duration, *sweep.Sweep)) dbc.Outcome {
	terms := sweep.Terms{Strategy: k.strategy, Deadline: time.Duration(k.deadline) * dbc.Unit, Budget: protocol.Credits(k.budget) * protocol.Credit}
	return dbc.Run(dbc.Table1(), dbc.Jobs(l.seed(k.seed)), terms, watch)
}

func dbcRow(k dbcKey, o dbc.Outcome) []string {
	row := []string{string(k.strategy), fmt.Sprint(k.deadline), fmt.Sprint(k.budget), fmt.Sprint(k.seed), fmt.Sprint(o.Done), num(units(o.Time), 2), num(price(o.Spent), 2)}
	for _, x := range dbc.Table1() {
		row = append(row, fmt.Sprint(o.Per[x.Name]))
	}
	return row
}

func units(d time.Duration) float64 { return float64(d) / float64(dbc.Unit) }

// mean is the mean of a figure over the seeds.
func (r dbcReport) mean(k dbcKey, of func(dbc.Outcome) float64) float64 {
	var list []float64
	for k.seed = range r.seeds {
		list = append(list, of(r.runs[k]))
	}
	return mean(list)
}

func dbcDone(o dbc.Outcome) float64  { return float64(o.Done) }
func dbcTime(o dbc.Outcome) float64  { return units(o.Time) }
func dbcSpent(o dbc.Outcome) float64 { return price(o.Spent) }

// surfaces are figure 4: what is reached, over budgets, a line for each deadline.
func (r dbcReport) surfaces() {
	for i, f := range []struct {
		what string
		of   func(dbc.Outcome) float64
	}{{"jobs done", dbcDone}, {"time", dbcTime}, {"budget spent", dbcSpent}} {
		var tiles []*plot.Plot
		for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
			p := tile(fmt.Sprintf("%s: %s", s, f.what))
			p.X.Label.Text, p.Y.Label.Text = "budget (G$)", f.what
			for j, d := range dbcDeadlines() {
				line := series{name: fmt.Sprint(d), style: j}
				for _, b := range dbcBudgets() {
					line = line.with(float64(b), r.mean(dbcKey{s, d, b, 0}, f.of))
				}
				add(p, line)
			}
			p.Legend.Top, p.Legend.Left = false, false
			tiles = append(tiles, p)
		}
		name := fmt.Sprintf("dbc-fig4%c%c", 'a'+2*i, 'b'+2*i)
		r.tiles(name, fmt.Sprintf("Figures 4%c and 4%c: %s by budget, a line for each deadline.", 'a'+2*i, 'b'+2*i, f.what), 2, tiles)
	}
}

// selections are figures 5 and 6: the jobs of each resource, over budgets and over deadlines.
func (r dbcReport) selections() {
	pick := func(title, x string, s sweep.Strategy, over []int, key func(int) dbcKey) *plot.Plot {
		p := tile(fmt.Sprintf("%s, %s", s, title))
		p.X.Label.Text, p.Y.Label.Text = x, "jobs"
		for i, res := range dbc.Table1() {
			line := series{name: res.Name, style: i, dashed: i >= 8}
			for _, v := range over {
				line = line.with(float64(v), r.mean(key(v), func(o dbc.Outcome) float64 { return float64(o.Per[res.Name]) }))
			}
			if slices.Max(line.y) > 0 {
				add(p, line)
			}
		}
		p.Y.Min, p.Legend.TextStyle.Font.Size = 0, vg.Points(7)
		aside(p, .25)
		return p
	}
	var five, six []*plot.Plot
	for _, d := range []int{100, 3100} {
		for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
			five = append(five, pick(fmt.Sprintf("deadline %d", d), "budget (G$)", s, dbcBudgets(), func(b int) dbcKey { return dbcKey{s, d, b, 0} }))
		}
	}
	for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
		six = append(six, pick("budget 22,000", "deadline", s, dbcDeadlines(), func(d int) dbcKey { return dbcKey{s, d, dbcBudget, 0} }))
	}
	r.tiles("dbc-fig5", "Figures 5a to 5d: jobs of each resource by budget, at a low and a high deadline.", 2, five)
	r.tiles("dbc-fig6", "Figures 6a and 6b: jobs of each resource by deadline, at a high budget.", 2, six)
}

// compared are figures 7 and 8, with every strategy.
func (r dbcReport) compared() {
	t := Table{Name: "rich", About: "At a budget of 22,000, means over seeds", Shown: true, Columns: []string{"strategy", "deadline", "done", "time", "spent"}}
	for i, f := range []struct {
		name, what string
		of         func(dbc.Outcome) float64
	}{{"dbc-fig7", "time", dbcTime}, {"dbc-fig8", "budget spent", dbcSpent}} {
		p := chart("Budget 22,000", "deadline", f.what)
		for j, s := range sweep.Strategies() {
			line := series{name: string(s), style: j, dashed: j > 1}
			for _, d := range dbcDeadlines() {
				k := dbcKey{s, d, dbcBudget, 0}
				line = line.with(float64(d), r.mean(k, f.of))
				if i == 0 {
					t.Rows = append(t.Rows, []string{string(s), fmt.Sprint(d), num(r.mean(k, dbcDone), 1), num(r.mean(k, dbcTime), 0), num(r.mean(k, dbcSpent), 0)})
				}
			}
			add(p, line)
		}
		p.Y.Min = 0
		roof(p, .3)
		r.figure(f.name, fmt.Sprintf("Figure %s: %s by deadline, for all strategies.", f.name[len("dbc-fig"):], f.what), p)
	}
	r.table(t)
}

// traces are figures 9 to 12: jobs completed by and committed to each resource over time.
func (r dbcReport) traces(l *Lab) {
	t := Table{Name: "traces", About: "Jobs completed and committed over time at a deadline of 1,100", Columns: []string{"strategy", "time", "resource", "completed", "committed"}}
	for i, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
		done, committed := make([]series, len(dbc.Table1())), make([]series, len(dbc.Table1()))
		l.dbc(dbcKey{s, 1100, dbcBudget, 0}, func(now time.Duration, x *sweep.Sweep) {
			for j, v := range x.Sites() {
				done[j] = done[j].with(units(now), float64(v.Done))
				committed[j] = committed[j].with(units(now), float64(v.Done+v.Running+v.Assigned))
				if v.Done+v.Running+v.Assigned > 0 {
					t.Rows = append(t.Rows, []string{string(s), num(units(now), 2), v.Site, fmt.Sprint(v.Done), fmt.Sprint(v.Done + v.Running + v.Assigned)})
				}
			}
		})
		for k, f := range []struct {
			lines []series
			what  string
		}{{done, "completed"}, {committed, "committed"}} {
			p := chart(fmt.Sprintf("%s, deadline 1,100, budget 22,000", s), "time", "jobs "+f.what)
			for j, line := range f.lines {
				if slices.Max(line.y) > 0 {
					line.name, line.style, line.bare, line.dashed = dbc.Table1()[j].Name, j, true, j >= 8
					add(p, line)
				}
			}
			p.Y.Min = 0
			aside(p, .12)
			n := 9 + i + 2*k
			r.figure(fmt.Sprintf("dbc-fig%d", n), fmt.Sprintf("Figure %d: jobs %s by resource, %s.", n, f.what, s), p)
		}
	}
	r.table(t)
}

// shapes are what 004 found, with the ranges of an independent reference.
func (r dbcReport) shapes() {
	rich := func(s sweep.Strategy, d int, of func(dbc.Outcome) float64) float64 {
		return r.mean(dbcKey{s, d, dbcBudget, 0}, of)
	}
	r.shape("all jobs are done at a budget of 22,000", rich(sweep.Cost, 100, dbcDone) == 200 && rich(sweep.CostTime, 100, dbcDone) == 200,
		fmt.Sprintf("%.0f and %.0f at the shortest deadline", rich(sweep.Cost, 100, dbcDone), rich(sweep.CostTime, 100, dbcDone)), "200")
	falls := 0
	for _, s := range []sweep.Strategy{sweep.Cost, sweep.CostTime} {
		falls += r.falls(s)
	}
	r.shape("jobs done never fall with budget or deadline", falls == 0, fmt.Sprintf("%d times", falls), "0 times")
	apart := 0.0
	for _, d := range dbcDeadlines() {
		a, b := rich(sweep.Cost, d, dbcSpent), rich(sweep.CostTime, d, dbcSpent)
		apart = max(apart, math.Abs(a-b)/a)
	}
	r.shape("cost and cost-time spend the same", apart < .02, num(100*apart, 2)+" % apart at most", "within 2 %")
	for _, d := range []int{1600, 2100, 2600, 3100, 3600} {
		by, both := rich(sweep.Cost, d, dbcTime), rich(sweep.CostTime, d, dbcTime)
		want := min(.97*float64(d), 2750)
		r.shape(fmt.Sprintf("from 1,600 on cost uses its deadline, cost-time does not: %d", d), by > want && both > 1370 && both < 1405,
			fmt.Sprintf("ends at %.0f and %.0f", by, both), fmt.Sprintf("above %.0f, and about 1,390", want))
	}
	on := func(s sweep.Strategy, d int, names ...string) bool {
		for _, x := range dbc.Table1() {
			if n := rich(s, d, func(o dbc.Outcome) float64 { return float64(o.Per[x.Name]) }); (n > 0) != slices.Contains(names, x.Name) {
				return false
			}
		}
		return true
	}
	r.shape("at 1,100 cost takes one resource of a price after the other", on(sweep.Cost, 1100, "R4", "R8", "R10"), yes(on(sweep.Cost, 1100, "R4", "R8", "R10")), "R4, R8, R10")
	all := on(sweep.CostTime, 1100, "R2", "R3", "R4", "R8", "R10")
	r.shape("at 1,100 cost-time takes all of a price", all, yes(all), "R2, R3, R4, R8, R10")
	spent := rich(sweep.Cost, 100, dbcSpent)
	r.shape("spent at a deadline of 100", spent > 21_000 && spent < 21_800, num(spent, 0), "about 21,400")
	for i, want := range []float64{65, 94, 129, 161, 191} {
		budget := []int{5_000, 8_000, 12_000, 16_000, 20_000}[i]
		got := r.mean(dbcKey{sweep.Cost, 100, budget, 0}, dbcDone)
		r.shape(fmt.Sprintf("jobs done by 100 for %d", budget), math.Abs(got-want) <= 3, num(got, 1), num(want, 0))
	}
}

// reference compares with the figures of an independent reference.
func (r dbcReport) reference() {
	near := func(name string, k dbcKey, of func(dbc.Outcome) float64, want, within float64) {
		got := r.mean(k, of)
		r.shape(name, math.Abs(got-want) <= within, num(got, 1), fmt.Sprintf("%s, within %s", num(want, 0), num(within, 0)))
	}
	for i, want := range []float64{116, 165, 181} {
		d := []int{600, 1100, 1600}[i]
		near(fmt.Sprintf("jobs done by %d for 5,000", d), dbcKey{sweep.Cost, d, 5_000, 0}, dbcDone, want, 3)
	}
	for i, want := range []float64{12_000, 7_955, 5_532} {
		d := []int{600, 1100, 1600}[i]
		near(fmt.Sprintf("spent by %d", d), dbcKey{sweep.Cost, d, dbcBudget, 0}, dbcSpent, want, .01*want)
	}
	for _, x := range []struct {
		strategy sweep.Strategy
		deadline int
		name     string
		want     float64
	}{
		{sweep.Cost, 1100, "R4", 78}, {sweep.Cost, 1100, "R8", 79}, {sweep.Cost, 1100, "R10", 43}, {sweep.Cost, 1600, "R4", 114}, {sweep.Cost, 2100, "R4", 152},
		{sweep.Cost, 2600, "R4", 188}, {sweep.CostTime, 1100, "R10", 25}, {sweep.CostTime, 1100, "R2", 12}, {sweep.CostTime, 1100, "R3", 6}, {sweep.CostTime, 1600, "R4", 100},
	} {
		near(fmt.Sprintf("%s by %d: jobs of %s", x.strategy, x.deadline, x.name), dbcKey{x.strategy, x.deadline, dbcBudget, 0}, func(o dbc.Outcome) float64 { return float64(o.Per[x.name]) }, x.want, 2)
	}
	for i, s := range []sweep.Strategy{sweep.Time, sweep.ConservativeTime} { // the source has no figures of them
		near(string(s)+" by 600 ends", dbcKey{s, 600, dbcBudget, 0}, dbcTime, []float64{85, 167}[i], 3)
		near(string(s)+" by 600 spends", dbcKey{s, 600, dbcBudget, 0}, dbcSpent, []float64{21_900, 17_200}[i], 200)
	}
}

func yes(b bool) string {
	if b {
		return "just these"
	}
	return "others"
}

// falls counts where more budget or time got fewer jobs done.
func (r dbcReport) falls(s sweep.Strategy) (n int) {
	for seed := range r.seeds {
		for i, d := range dbcDeadlines() {
			for j, b := range dbcBudgets() {
				done := r.runs[dbcKey{s, d, b, seed}].Done
				if i > 0 && r.runs[dbcKey{s, dbcDeadlines()[i-1], b, seed}].Done > done || j > 0 && r.runs[dbcKey{s, d, dbcBudgets()[j-1], seed}].Done > done {
					n++
				}
			}
		}
	}
	return n
}

func (r dbcReport) facts() {
	for _, d := range []int{100, 1100, 3600} {
		a, b := dbcKey{sweep.Cost, d, dbcBudget, 0}, dbcKey{sweep.CostTime, d, dbcBudget, 0}
		source := map[int]string{100: "21,250 to 21,650 G$", 1100: "7,900 to 8,010 G$, R4 about 78, R8 79, R10 43", 3600: "2,760 to 2,790 and 1,380 to 1,395"}[d]
		r.fact(fmt.Sprintf("deadline %d, cost and cost-time", d),
			fmt.Sprintf("end at %.0f and %.0f, spend %.0f and %.0f G$", r.mean(a, dbcTime), r.mean(b, dbcTime), r.mean(a, dbcSpent), r.mean(b, dbcSpent)), source)
	}
	r.note("The broker knows the lengths of the jobs, so nothing is taken back, and the early extra commitments to R10 in figures 11 and 12 of the source do not appear.")
	r.note("The source does not describe the two time strategies by figures. Both use the whole budget's share for each job; conservative-time keeps that share for the jobs that are not assigned yet.")
}

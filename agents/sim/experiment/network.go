package experiment

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/plot"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/sim/real"
)

// The network of figure 13.
const (
	netSites = 15 // the first resources of table 2
	netLeast = 20 * time.Millisecond
	netMost  = 75 * time.Millisecond // of a link, one way
)

// netRun is one run of figure 13: so many users at once, and every time that was
// measured in it, in seconds.
type netRun struct {
	users, repeat int
	responses     []float64
	rounds        []float64
	totals        []float64
	settled       int
}

// netStep is between the numbers of users that are tried.
const netStep = 5

// netCounts are the numbers of users at once that are tried: 1, 5, 10 and so on.
func netCounts(most int) []int {
	list := []int{1}
	for n := netStep; n < most; n += netStep {
		list = append(list, n)
	}
	return append(list, most)
}

// network is figure 13: users who order at the same instant from fifteen
// resources, every agent a process on a host of its own behind a WAN; beside it
// the same in virtual time, with the same delays. Where no WAN can be made, there
// is only the latter.
func network(ctx context.Context, l *Lab, r *Result) error {
	sellers, counts, repeats := l.twenty()[:netSites], netCounts(l.netUsers()), l.repeat(3)
	l.issue(l.netUsers(), sellers)
	simulated, err := gather(ctx, l, "network, simulated", repeats*len(counts), func(i int) netRun {
		return l.netRun(sellers, counts[i%len(counts)], i/len(counts))
	})
	r.table(netTable("simulated", "Every simulated run", simulated))
	if err != nil {
		return err
	}
	live, err := l.netReal(ctx, r, counts, repeats)
	r.table(netTable("real", "Every run on real processes; these times are measured, and no two runs give the same", live))
	if err != nil {
		return err
	}
	r.netTell(counts, simulated, live)
	return nil
}

// netRun is a run in virtual time. All delay is that of the trial.
func (l *Lab) netRun(sellers []seller, users, repeat int) netRun {
	wide := *l
	wide.Settings.DelayMin, wide.Settings.DelayMax = 0, 0
	s := wide.stage(play{seed: l.seed(repeat), sellers: sellers, users: users, far: l.far(sellers)})
	s.watch.quiet = true
	id := func(u int) string { return fmt.Sprintf("network-%d", u+1) }
	for u := range users {
		s.order(u, id(u), early(workRounds, longRound), netJob())
	}
	s.await(users)
	x := netRun{users: users, repeat: repeat}
	for u, o := range s.owner {
		x.add(o.done[id(u)], s.watch.answers[id(u)])
	}
	return x
}

// far are the delays of the trial, for hosts of a world.
func (l *Lab) far(sellers []seller) func(from, to *sim.Host) time.Duration {
	place := map[string]int{market.BankName: 0}
	for i, x := range sellers {
		place[x.name] = 1 + i
	}
	for i := range l.netUsers() {
		place[market.UserName(i+1)] = 1 + len(sellers) + i
	}
	delays := l.netMarket(make([]real.TrialSite, len(sellers))).Distances()
	return func(from, to *sim.Host) time.Duration { return delays[place[from.Name]][place[to.Name]] }
}

// netUsers are the most users at once.
func (l *Lab) netUsers() int { return min(l.Settings.Users, real.MaxUsers) }

// netMarket is the market of real processes.
func (l *Lab) netMarket(sites []real.TrialSite) real.TrialConfig {
	return real.TrialConfig{Program: l.Program, Sites: sites, Users: l.netUsers(), Least: netLeast, Most: netMost, Seed: l.Seed}
}

// netJob is what every user buys, as for figure 12.
func netJob() job { return job{"single", 16, time.Hour, credits(70)} }

func netTable(name, about string, runs []netRun) Table {
	t := Table{Name: name, About: about, Columns: []string{
		"users", "repeat", "responses", "response_s", "response_dev_s", "rounds", "round_s", "round_dev_s", "total_s", "settled",
	}}
	for _, x := range runs {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(x.users), fmt.Sprint(x.repeat + 1), fmt.Sprint(len(x.responses)), num(mean(x.responses), 6), num(deviation(x.responses), 6),
			fmt.Sprint(len(x.rounds)), num(mean(x.rounds), 6), num(deviation(x.rounds), 6), num(mean(x.totals), 6), fmt.Sprint(x.settled),
		})
	}
	return t
}

// netBy is the mean of all times that were measured with so many users, whatever
// the repeat, and their standard deviation.
func netBy(runs []netRun, counts []int, of func(netRun) []float64) series {
	s := series{dev: []float64{}}
	for _, n := range counts {
		var list []float64
		for _, x := range runs {
			if x.users == n {
				list = append(list, of(x)...)
			}
		}
		if len(list) > 0 {
			s.x, s.y, s.dev = append(s.x, float64(n)), append(s.y, mean(list)), append(s.dev, deviation(list))
		}
	}
	return s
}

func (r *Result) netTell(counts []int, simulated, live []netRun) {
	for _, f := range []struct {
		name, noun, y, caption string
		of                     func(netRun) []float64
	}{
		{"fig13a", "response", "response time (s)", "Figure 13a: from a call for proposals to a resource's answer", func(x netRun) []float64 { return x.responses }},
		{"fig13b", "round", "duration of a round (s)", "Figure 13b: duration of a bidding round", func(x netRun) []float64 { return x.rounds }},
	} {
		virtual, measured := netBy(simulated, counts, f.of), netBy(live, counts, f.of)
		virtual.name, virtual.style = "simulated, with the same delays", 1
		measured.name, measured.style = "real processes", 0
		r.netFigure(f.name, f.y, f.caption, counts, virtual, measured)
		r.netShapes(f.noun, virtual, measured)
	}
	r.note("Links have a delay of %s to %s one way, the same in both directions and drawn for each pair; nothing is lost.", netLeast, netMost)
	r.note("Means and deviations are over all single times with so many users, not over the means of runs; most of the deviation of response times is that of distances.")
}

// netFigure draws both a little apart, so that their bars can be told.
func (r *Result) netFigure(name, y, caption string, counts []int, list ...series) {
	p := chart("Users at once across a network", "users at once", y)
	for i, s := range list {
		s.x = slices.Clone(s.x)
		for j := range s.x {
			s.x[j] += .3*float64(i) - .15
		}
		add(p, s)
	}
	var ticks plot.ConstantTicks
	for _, n := range counts {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	p.X.Tick.Marker, p.X.Min, p.X.Max, p.Y.Min = ticks, 0, float64(counts[len(counts)-1]+1), 0
	roof(p, .25)
	p.Legend.Left = true
	r.figure(name, caption+", fifteen resources; mean and standard deviation of all single times. Points are drawn a little apart.", p)
}

// netShapes are looked at if real processes ran.
func (r *Result) netShapes(noun string, simulated, live series) {
	if len(live.x) < 3 {
		return
	}
	if noun == "response" {
		r.linear("response time grows linearly with users, real processes", live)
	}
	wider := 0
	for i := range live.dev {
		if live.dev[i] > simulated.dev[i] {
			wider++
		}
	}
	r.shape(noun+" times vary more than the simulated ones", wider == len(live.dev),
		fmt.Sprintf("with %d of %d numbers of users; mean deviation %.4f s, simulated %.4f s", wider, len(live.dev), mean(live.dev), mean(simulated.dev)), "with every number of users")
	r.fact(noun+" time with 1 and with most users, real processes", fmt.Sprintf("%.3f s and %.3f s", live.y[0], live.y[len(live.y)-1]), "same scaling as on one workstation, greater variance")
}

// processors are said beside what was measured on them.
func (r *Result) processors(agents int) {
	r.note("All %d processes shared the %d processors of one machine, with whatever else it did.", agents, runtime.NumCPU())
}

package experiment

import (
	"context"
	"fmt"
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

// netRun is one run of figure 13 with a number of users at once, and all times measured in
// it, in seconds.
type netRun struct {
	users, repeat int
	responses     []float64
	rounds        []float64
	totals        []float64
	settled       int
}

// netStep is the step between numbers of users.
const netStep = 5

// netCounts are the numbers of users at once: 1, 5, 10 and so on.
func netCounts(most int) []int {
	list := []int{1}
	for n := netStep; n < most; n += netStep {
		list = append(list, n)
	}
	return append(list, most)
}

// network makes figure 13: users order at the same instant from fifteen resources, with every
// agent a process on its own host behind a WAN. For comparison it repeats this in virtual
// time with the same delays. Without support for a WAN it makes only the latter.
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
	r.table(netTable("real", "Every run on real processes; these are measured times, which differ from run to run", live))
	if err != nil {
		return err
	}
	r.netTell(counts, simulated, live)
	return nil
}

// netRun makes a run in virtual time, with the delays of the trial.
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

// far returns the delays of the trial for the hosts of a world.
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

func (l *Lab) netUsers() int { return min(l.Settings.Users, real.MaxUsers) }

// netMarket describes the market of real processes.
func (l *Lab) netMarket(sites []real.TrialSite) real.TrialConfig {
	return real.TrialConfig{Program: l.Program, Sites: sites, Users: l.netUsers(), Least: netLeast, Most: netMost, Seed: l.Seed}
}

func netJob() job { return job{"single", 16, time.Hour, credits(70)} }

func netTable(name, about string, runs []netRun) Table {
	columns := []string{"users", "repeat", "responses", "response_s", "response_dev_s", "rounds", "round_s", "round_dev_s", "total_s", "settled"}
	return Table{Name: name, About: about, Columns: columns, Rows: each(runs, func(x netRun) []string {
		return []string{
			fmt.Sprint(x.users), fmt.Sprint(x.repeat + 1), fmt.Sprint(len(x.responses)), num(mean(x.responses), 6), num(deviation(x.responses), 6),
			fmt.Sprint(len(x.rounds)), num(mean(x.rounds), 6), num(deviation(x.rounds), 6), num(mean(x.totals), 6), fmt.Sprint(x.settled),
		}
	})}
}

// netBy is the mean and standard deviation of all times by number of users, over all repeats.
func netBy(runs []netRun, counts []int, of func(netRun) []float64) series {
	s := series{dev: []float64{}}
	for _, n := range counts {
		var list []float64
		for _, x := range runs {
			if x.users == n {
				list = append(list, of(x)...)
			}
		}
		s = s.sampled(float64(n), list)
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
	r.note("Links have a one-way delay of %s to %s, drawn for each pair and equal in both directions, and lose nothing.", netLeast, netMost)
	r.note("Means and deviations are over all single times with a number of users, not over the means of runs. Most of the deviation of response times comes from the distances.")
}

// netFigure draws both series slightly apart, so that their bars do not overlap.
func (r *Result) netFigure(name, y, caption string, counts []int, list ...series) {
	p := chart("Users at once across a network", "users at once", y)
	for i, s := range list {
		s.x = slices.Clone(s.x)
		for j := range s.x {
			s.x[j] += .3*float64(i) - .15
		}
		add(p, s)
	}
	ticks := each(counts, func(n int) plot.Tick { return plot.Tick{Value: float64(n), Label: fmt.Sprint(n)} })
	p.X.Tick.Marker, p.X.Min, p.X.Max, p.Y.Min = plot.ConstantTicks(ticks), 0, float64(counts[len(counts)-1]+1), 0
	roof(p, .25)
	p.Legend.Left = true
	r.figure(name, caption+", fifteen resources; mean and standard deviation of all single times. Points are drawn a little apart.", p)
}

// netShapes checks the shapes if real processes ran.
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

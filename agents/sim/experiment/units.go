package experiment

import (
	"context"
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/protocol/message"
)

// unitsRun is figure 11b: auctions of one unit, two, and so on, the deadline and
// the price of each drawn, the whole a hundred times, all agents on one
// workstation as the source's were.
func unitsRun(ctx context.Context, l *Lab, r *Result) error {
	sellers := l.twenty()
	l.issue(1, sellers)
	sets, err := gather(ctx, l, "units", l.repeat(100), func(i int) []message.Purchase {
		s := l.stage(play{seed: l.seed(i), sellers: sellers, users: 1, workstation: true})
		c := sim.NewChance(l.seed(i), 7)
		var list []message.Purchase
		for n := 1; n <= l.Settings.Units; n++ {
			list = append(list, s.buy(0, fmt.Sprintf("units-%d", n), early(workRounds, longRound), drawn(c, n)...))
		}
		return list
	})
	t := Table{Name: "runs", About: "Every auction", Columns: []string{"repeat", "units", "settled", "round_s", "bidding_s", "agreement_s", "total_s"}}
	for i, set := range sets {
		for n, p := range set {
			x := timesOf(p)
			t.Rows = append(t.Rows, []string{fmt.Sprint(i + 1), fmt.Sprint(n + 1), fmt.Sprint(p.Settled), num(x.round, 6), num(x.bidding, 6), num(x.agreement, 6), num(x.total, 6)})
		}
	}
	r.table(t)
	if err != nil {
		return err
	}
	l.unitsTell(r, sets)
	return nil
}

// longRound is the source's round limit of section 12, so that no round ends
// before all have answered.
const longRound = 5 * time.Minute

// drawn are n units: the start up to twelve hours ahead, so the deadline an hour
// later, and a price that some of the twenty may take.
func drawn(c sim.Chance, n int) []job {
	var list []job
	for i := range n {
		list = append(list, job{fmt.Sprintf("unit%d", i+1), 16, time.Duration(30+c.N(12*60-30)) * time.Minute, credits(35 + c.N(46))})
	}
	return list
}

// times of a purchase, in seconds.
type times struct{ round, bidding, agreement, total float64 }

func timesOf(p message.Purchase) times {
	var rounds []float64
	for _, x := range p.Rounds {
		rounds = append(rounds, x.MS/1000)
	}
	return times{mean(rounds), p.AuctionMS / 1000, (p.VoteMS + p.SettleMS) / 1000, p.ElapsedMS / 1000}
}

func (l *Lab) unitsTell(r *Result, sets [][]message.Purchase) {
	var xs []float64
	list := [3]series{{name: "bidding rounds together", style: 0}, {name: "final agreement", style: 1}, {name: "total", style: 2}}
	for n := range l.Settings.Units {
		var values [3][]float64
		for _, set := range sets {
			if p := set[n]; p.Settled {
				x := timesOf(p)
				for i, v := range []float64{x.bidding, x.agreement, x.total} {
					values[i] = append(values[i], v)
				}
			}
		}
		if len(values[0]) == 0 {
			continue
		}
		xs = append(xs, float64(n+1))
		for i := range list {
			list[i].y, list[i].dev = append(list[i].y, mean(values[i])), append(list[i].dev, deviation(values[i]))
		}
	}
	for i := range list {
		list[i].x = xs
	}
	p := chart("Time and number of units", "units of the request", "mean time (s)")
	add(p, list[:]...)
	p.Y.Min = 0
	roof(p, .2)
	p.Legend.Left = true
	r.figure("fig11b", "Figure 11b: times of an auction by its number of units; bars show the standard deviation.", p)
	r.unitsShapes(xs, list[0].y, list[1].y)
	r.note("The time that an agent needs is a setting: processing for each message, unit_time for each unit of a call, on one processor that all share. That one call's cost is linear in its units is so assumed; that a whole auction's is not more than linear, with its documents, offers, clearing and contracts, is what comes out.")
}

func (r *Result) unitsShapes(xs, bidding, agreement []float64) {
	if len(xs) < 3 {
		r.note("Fewer than three sizes were sold: the shapes of figure 11b are not looked at.")
		return
	}
	slope, _, explained := fit(xs, bidding)
	r.shape("bidding linear in units", slope > 0 && explained > .98, fmt.Sprintf("%.4f s per unit, R² %.4f", slope, explained), "rising, R² above 0.98")
	flat, _, _ := fit(xs, agreement)
	r.fact("a further unit lengthens bidding and agreement by", fmt.Sprintf("%.4f s and %.4f s", slope, flat), "a couple of seconds, and nothing")
	share := flat * (xs[len(xs)-1] - xs[0]) / mean(agreement)
	r.shape("final agreement flat in units", abs(share) < .5, fmt.Sprintf("changes by %.0f %% of its mean from %.0f to %.0f units", 100*share, xs[0], xs[len(xs)-1]), "by less than 50 %")
}

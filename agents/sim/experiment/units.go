package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"ramp/agents/sim"
	"ramp/protocol/message"
)

// unitsRun makes figure 11b: auctions of one unit, two, and so on, with random deadlines and
// prices, a hundred times, with all agents on one workstation as in the source. It repeats a
// tenth of this with batch systems that answer at once, to find their share in the time of
// the final agreement.
func unitsRun(ctx context.Context, l *Lab, r *Result) error {
	sellers, repeats := l.twenty(), l.repeat(unitsRepeats)
	again := max(1, repeats/10)
	l.issue(1, sellers)
	sets, err := gather(ctx, l, "units", repeats+again, func(i int) unitsSet {
		return l.unitsOf(sellers, unitsSet{repeat: i % repeats, prompt: i >= repeats})
	})
	t := Table{Name: "runs", About: "Every auction", Columns: []string{"repeat", "units", "prompt_batch", "settled", "sellers", "round_s", "bidding_s", "vote_s", "agreement_s", "total_s"}}
	for _, set := range sets {
		for n, p := range set.bought {
			x := timesOf(p)
			t.Rows = append(t.Rows, []string{
				fmt.Sprint(set.repeat + 1), fmt.Sprint(n + 1), fmt.Sprint(set.prompt), fmt.Sprint(p.Settled), fmt.Sprint(sellersOf(p)),
				num(x.round, 6), num(x.bidding, 6), num(p.VoteMS/1000, 6), num(x.agreement, 6), num(x.total, 6),
			})
		}
	}
	r.table(t)
	if err != nil {
		return err
	}
	l.unitsTell(r, sets)
	return nil
}

// unitsRepeats is the number of repeats in the source.
const unitsRepeats = 100

// unitsSet is one auction of each number of units, in one market.
type unitsSet struct {
	repeat int
	prompt bool               // batch systems answer at once
	bought []message.Purchase // of one unit, of two, and so on
}

func (l *Lab) unitsOf(sellers []seller, x unitsSet) unitsSet {
	s := l.stage(play{seed: l.seed(x.repeat), sellers: sellers, users: 1, workstation: true, prompt: x.prompt})
	s.watch.quiet = true
	c := sim.NewChance(l.seed(x.repeat), 7)
	for n := 1; n <= l.Settings.Units; n++ {
		x.bought = append(x.bought, s.buy(0, fmt.Sprintf("units-%d", n), early(workRounds, longRound), drawn(c, n)...))
	}
	return x
}

// sellersOf is the number of sellers of a purchase.
func sellersOf(p message.Purchase) int {
	names := map[string]bool{}
	for _, u := range p.Units {
		names[u.Resource] = true
	}
	return len(names)
}

// longRound is the source's round limit of section 12, so that no round ends
// before all have answered.
const longRound = 5 * time.Minute

// drawn draws n units: a start up to twelve hours ahead, a deadline an hour later, and a
// price that some of the twenty may accept.
func drawn(c sim.Chance, n int) []job {
	var list []job
	for i := range n {
		list = append(list, job{fmt.Sprintf("unit%d", i+1), 16, time.Duration(30+c.N(12*60-30)) * time.Minute, credits(35 + c.N(46))})
	}
	return list
}

// roundSeconds are the durations of a purchase's rounds.
func roundSeconds(p message.Purchase) []float64 {
	return each(p.Rounds, func(x message.Round) float64 { return x.MS / 1000 })
}

// times of a purchase, in seconds.
type times struct{ round, bidding, agreement, total float64 }

func timesOf(p message.Purchase) times {
	return times{mean(roundSeconds(p)), p.AuctionMS / 1000, (p.VoteMS + p.SettleMS) / 1000, p.ElapsedMS / 1000}
}

// unitsBy returns the means of one of the times, by number of units.
func (l *Lab) unitsBy(sets []unitsSet, prompt bool, of func(message.Purchase) float64) series {
	s := series{dev: []float64{}}
	for n := range l.Settings.Units {
		var list []float64
		for _, set := range sets {
			if set.prompt == prompt && set.bought[n].Settled {
				list = append(list, of(set.bought[n]))
			}
		}
		s = s.sampled(float64(n+1), list)
	}
	return s
}

func (l *Lab) unitsTell(r *Result, sets []unitsSet) {
	bidding := l.unitsBy(sets, false, func(p message.Purchase) float64 { return timesOf(p).bidding })
	agreement := l.unitsBy(sets, false, func(p message.Purchase) float64 { return timesOf(p).agreement })
	total := l.unitsBy(sets, false, func(p message.Purchase) float64 { return timesOf(p).total })
	prompt := l.unitsBy(sets, true, func(p message.Purchase) float64 { return timesOf(p).agreement })
	bidding.name, agreement.name, agreement.style, total.name, total.style = "bidding rounds together", "final agreement", 1, "total", 2
	prompt.name, prompt.style, prompt.dashed, prompt.dev = "final agreement, batch systems that answer at once", 3, true, nil
	p := chart("Time and number of units", "units of the request", "mean time (s)")
	add(p, bidding, agreement, total, prompt)
	p.Y.Min = 0
	roof(p, .25)
	p.Legend.Left = true
	r.figure("fig11b", "Figure 11b: times of an auction by its number of units; bars show the standard deviation.", p)
	r.unitsShapes(bidding.x, bidding.y, agreement.y)
	r.unitsWhy(agreement, prompt, l.unitsBy(sets, false, func(p message.Purchase) float64 { return float64(sellersOf(p)) }))
	r.note("The processing time of an agent is a setting: processing for each message, unit_time for each unit of a call, on one shared processor. So the linear cost of a single call is an assumption. The result is that a whole auction, with its documents, offers, clearing and contracts, costs no more than linear.")
}

// unitsWhy reports what lengthens the final agreement.
func (r *Result) unitsWhy(agreement, prompt, sellers series) {
	if len(agreement.x) < 3 || len(prompt.x) < 3 {
		return
	}
	last, prompts := len(agreement.x)-1, len(prompt.x)-1
	r.fact(fmt.Sprintf("final agreement of %.0f and of %.0f units", agreement.x[0], agreement.x[last]),
		fmt.Sprintf("%.3f s and %.3f s, with %.1f and %.1f sellers", agreement.y[0], agreement.y[last], sellers.y[0], sellers.y[last]), "does not increase")
	r.fact("the same with batch systems that answer at once", fmt.Sprintf("%.3f s and %.3f s", prompt.y[0], prompt.y[prompts]), "-")
	r.note("The agreement waits for batch systems. Each reserves one slot after another, with a mean of 1 to 50 ms per slot, drawn for the seller. With more units, more of them come from one seller, and the slowest seller is slower. The rest of the growth is the messages and disk writes of more sellers on the one processor. The source's agents ran a script for each unit in each round at each of twenty resources, but only one for each unit in the agreement: bidding grew by seconds per unit, and the agreement by a small part of that.")
}

func (r *Result) unitsShapes(xs, bidding, agreement []float64) {
	if len(xs) < 3 {
		r.note("Fewer than three sizes were sold: the shapes of figure 11b are not checked.")
		return
	}
	slope, _, explained := fit(xs, bidding)
	r.shape("bidding linear in units", slope > 0 && explained > .98, fmt.Sprintf("%.4f s per unit, R² %.4f", slope, explained), "rising, R² above 0.98")
	flat, _, _ := fit(xs, agreement)
	r.fact("each further unit lengthens bidding and agreement by", fmt.Sprintf("%.4f s and %.4f s", slope, flat), "a couple of seconds, and nothing")
	share := flat * (xs[len(xs)-1] - xs[0]) / mean(agreement)
	r.shape("final agreement flat in units", math.Abs(share) < .5, fmt.Sprintf("changes by %.0f %% of its mean from %.0f to %.0f units", 100*share, xs[0], xs[len(xs)-1]), "by less than 50 %")
}

package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ramp/protocol/message"
)

// workRun is one auction of table 3.
type workRun struct {
	start, pass int
	job         int // of table3, from 0
	p           message.Purchase
	bids        []bid
}

// workRounds is the number of rounds in the source (002 §10).
const workRounds = 3

// works runs the thirteen jobs, one after another, several times, at every market start.
func (l *Lab) works(ctx context.Context, sellers []seller, what string) ([]workRun, error) {
	l.issue(1, sellers)
	sets, err := gather(ctx, l, what, l.Settings.Starts, func(i int) []workRun {
		s := l.stage(play{seed: l.seed(i), offset: time.Duration(i) * l.Settings.Gap, sellers: sellers, users: 1})
		var runs []workRun
		for pass := range l.repeat(3) {
			for n, j := range table3() {
				id := fmt.Sprintf("%s-%d", j.name, pass+1)
				p := s.buy(0, id, l.fixed(workRounds), j)
				runs = append(runs, workRun{start: i, pass: pass, job: n, p: p, bids: s.watch.of(id)})
			}
		}
		return runs
	})
	return slices.Concat(sets...), err
}

// workloads makes table 3 with figures 8a and 9a.
func workloads(ctx context.Context, l *Lab, r *Result) error {
	runs, err := l.works(ctx, l.twenty(), "workloads")
	r.table(workTable(runs))
	r.table(bidTable(runs))
	if err != nil {
		return err
	}
	l.workTell(r, runs)
	return nil
}

func workTable(runs []workRun) Table {
	t := Table{Name: "runs", About: "Every auction", Columns: []string{
		"start", "pass", "job", "request_price", "round1", "round2", "round3", "winning_price", "winner", "settled", "found", "why",
	}}
	for _, x := range runs {
		j := table3()[x.job]
		row := []string{fmt.Sprint(x.start + 1), fmt.Sprint(x.pass + 1), j.name, num(price(j.price), 2)}
		for n := 1; n <= workRounds; n++ {
			row = append(row, num(x.roundMean(n), 6))
		}
		row = append(row, num(x.won(), 6), x.winner(), fmt.Sprint(x.p.Settled), fmt.Sprint(x.p.Found), x.p.Why)
		t.Rows = append(t.Rows, row)
	}
	return t
}

func bidTable(runs []workRun) Table {
	t := Table{Name: "bids", About: "Every offer", Columns: []string{"start", "pass", "job", "round", "resource", "standing", "offer"}}
	for _, x := range runs {
		for _, b := range x.bids {
			t.Rows = append(t.Rows, []string{
				fmt.Sprint(x.start + 1), fmt.Sprint(x.pass + 1), table3()[x.job].name, fmt.Sprint(b.round), b.seller, b.standing.String(), b.price.String(),
			})
		}
	}
	return t
}

// roundMean is the mean of the offers of a round, except the best-offer round, which has no
// ceilings.
func (x workRun) roundMean(n int) float64 {
	var list []float64
	for _, b := range x.bids {
		if b.round == n && b.price <= table3()[x.job].price {
			list = append(list, price(b.price))
		}
	}
	return mean(list)
}

func (x workRun) won() float64 {
	if !x.p.Settled {
		return math.NaN()
	}
	return price(x.p.Units[0].Price)
}

func (x workRun) winner() string {
	if !x.p.Settled {
		return ""
	}
	return x.p.Units[0].Resource
}

func (l *Lab) workTell(r *Result, runs []workRun) {
	r.workPrices(runs)
	r.workWinners(runs)
	r.workNear(runs)
	r.note("%d market starts, %s apart, with the thirteen jobs %d times at each, and three fixed rounds. The starts were not selected: start k is the base time plus k gaps.", l.Settings.Starts, l.Settings.Gap, l.repeat(3))
	r.note("A job fails if no seller accepts its price or has enough cores. As in the source, the user may approve the closest set; here no user does.")
}

// workPrices makes figure 8a, and the share of failures per job.
func (r *Result) workPrices(runs []workRun) {
	var names []string
	columns := []series{{name: "request", style: 7}, {name: "round 1", style: 4}, {name: "round 2", style: 0}, {name: "round 3", style: 2}, {name: "winning", style: 1}}
	t := Table{Name: "table3", About: "By job", Shown: true, Columns: []string{"job", "cores", "start in", "request", "round 1", "round 2", "round 3", "winning", "winning / request", "failures"}}
	var ratios []float64
	for n, j := range table3() {
		values := [5][]float64{{price(j.price)}}
		failures, all := 0, 0
		for _, x := range runs {
			if x.job != n {
				continue
			}
			all++
			for round := 1; round <= workRounds; round++ {
				values[round] = keep(values[round], x.roundMean(round))
			}
			values[4] = keep(values[4], x.won())
			if !x.p.Settled {
				failures++
			}
		}
		names = append(names, j.name)
		row := []string{j.name, fmt.Sprint(j.cores), fmt.Sprint(j.in)}
		for i := range columns {
			columns[i].y = append(columns[i].y, mean(values[i]))
			row = append(row, num(mean(values[i]), 2))
		}
		ratio := mean(values[4]) / price(j.price)
		ratios = keep(ratios, ratio)
		t.Rows = append(t.Rows, append(row, num(ratio, 3), fmt.Sprintf("%.0f %%", 100*float64(failures)/float64(max(1, all)))))
	}
	r.table(t)
	p := chart("Request, offer and winning prices", "", "mean price (credits per core-hour)")
	bars(p, names, columns)
	roof(p, .35)
	p.Legend.Left = true
	r.figure("fig8a", "Figure 8a: request price, mean offer of each round and mean winning price of the jobs of table 3; a missing bar means no offer.", p)
	r.fact("median of winning / opening price over the jobs", num(median(ratios), 3), "0.711")
	r.fact("jobs that failed at most of the starts", mostlyFailed(runs), "one of 13 (caption: 11, discussion: 13)")
}

func keep(list []float64, x float64) []float64 {
	if math.IsNaN(x) {
		return list
	}
	return append(list, x)
}

func mostlyFailed(runs []workRun) string {
	names := ""
	for n, j := range table3() {
		failed, all := 0, 0
		for _, x := range runs {
			if x.job == n {
				all++
				if !x.p.Settled {
					failed++
				}
			}
		}
		if 2*failed > all {
			names += j.name + " "
		}
	}
	if names == "" {
		return "none"
	}
	return names
}

// workWinners makes figure 9a.
func (r *Result) workWinners(runs []workRun) {
	won, sold := map[string]int{}, 0
	for _, x := range runs {
		if x.p.Settled {
			won[x.winner()]++
			sold++
		}
	}
	t := Table{Name: "winners", About: "Winners", Shown: true, Columns: []string{"resource", "jobs won", "share"}}
	names := slices.DeleteFunc(siteNames(), func(name string) bool { return won[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return won[b] - won[a] })
	shares := series{name: "share of the jobs won", style: 0}
	for _, n := range names {
		share := 100 * float64(won[n]) / float64(sold)
		shares.y = append(shares.y, share)
		t.Rows = append(t.Rows, []string{n, fmt.Sprint(won[n]), num(share, 1) + " %"})
	}
	r.table(t)
	if len(names) > 0 {
		p := chart("Winners", "", "share of the jobs won (%)")
		bars(p, names, []series{shares})
		r.figure("fig9a", "Figure 9a: which resources won the auctions of table 3.", p)
		r.fact("resources that won", fmt.Sprintf("%d of %d", len(names), len(Sites())), "5 of 20")
		r.fact("biggest winner", names[0], "atlas1")
	}
}

// workNear checks the shape of §10.2: jobs that open near the minima end in fewer rounds and
// at lower prices. A job opens near them if its price is at most a tenth above the median of
// the minima.
func (r *Result) workNear(runs []workRun) {
	minima := each(Sites(), func(s Site) float64 { return float64(s.Min) })
	edge := credits(int(median(minima) * 1.1))
	var near, far, nearRounds, farRounds []float64
	for _, x := range runs {
		if !x.p.Settled {
			continue
		}
		if n := float64(x.lowered()); table3()[x.job].price <= edge {
			near, nearRounds = append(near, x.won()), append(nearRounds, n)
		} else {
			far, farRounds = append(far, x.won()), append(farRounds, n)
		}
	}
	if len(near) == 0 || len(far) == 0 {
		r.note("No job that opens near the minima was sold: the shape of section 10.2 is not checked.")
		return
	}
	r.shape("prices opened near the minima end lower", mean(near) < mean(far), fmt.Sprintf("mean %.2f against %.2f", mean(near), mean(far)), "lower")
	r.shape("prices opened near the minima end in fewer rounds", mean(nearRounds) < mean(farRounds),
		fmt.Sprintf("%.2f rounds with lower offers against %.2f", mean(nearRounds), mean(farRounds)), "fewer")
}

// lowered counts the rounds in which the price fell: the first time, from that of the request.
func (x workRun) lowered() int {
	best, n := table3()[x.job].price, 0
	for round := 1; round <= workRounds; round++ {
		low := best
		for _, b := range x.bids {
			if b.round == round {
				low = min(low, b.price)
			}
		}
		if low < best {
			best, n = low, n+1
		}
	}
	return n
}

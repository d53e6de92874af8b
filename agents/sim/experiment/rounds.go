package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ramp/protocol/message"
)

// roundsRun is one auction of table 4.
type roundsRun struct {
	repeat, rounds int
	early          bool
	settled        bool
	price          float64
	auction, total time.Duration
	why            string // why it was not settled
}

// sourceRounds are the prices and durations, in seconds, of 002 table 4.
func sourceRounds() (prices, seconds []float64) {
	return []float64{66.00, 60.00, 51.83, 41.83, 37.40, 35.40, 37.83, 37.83, 34.75, 36.50},
		[]float64{18.81, 31.91, 46.19, 61.15, 76.18, 91.18, 106.21, 121.24, 136.26, 151.26}
}

// rounds makes table 4: the same request with one round, two, and so on, with fixed rounds
// and with rounds that end when all have answered. It repeats this three times, at market
// starts one gap apart.
func rounds(ctx context.Context, l *Lab, r *Result) error {
	sellers, repeats := l.twenty(), l.repeat(3)
	l.issue(1, sellers)
	sets, err := gather(ctx, l, "rounds", 2*repeats, func(i int) []roundsRun {
		return l.roundsOf(sellers, i/2, i%2 == 1)
	})
	runs := slices.Concat(sets...)
	r.table(roundsTable(runs))
	if err != nil {
		return err
	}
	l.roundsTell(r, runs)
	return nil
}

// roundsOf makes the auctions of one market start, one after another.
func (l *Lab) roundsOf(sellers []seller, repeat int, soon bool) []roundsRun {
	s := l.stage(play{seed: l.seed(repeat), offset: time.Duration(repeat) * l.Settings.Gap, sellers: sellers, users: 1})
	s.watch.quiet = true
	var runs []roundsRun
	for n := 1; n <= l.Settings.Rounds; n++ {
		options := l.fixed(n)
		if soon {
			options = early(n, l.Settings.RoundLimit)
		}
		p := s.buy(0, fmt.Sprintf("rounds-%d", n), options, table4())
		runs = append(runs, roundsRun{
			repeat: repeat, rounds: n, early: soon, settled: p.Settled, price: paid(p),
			auction: milliseconds(p.AuctionMS), total: milliseconds(p.ElapsedMS), why: p.Why,
		})
	}
	return runs
}

// paid is the price per core-hour of a purchase's first unit.
func paid(p message.Purchase) float64 {
	if !p.Settled || len(p.Units) == 0 {
		return 0
	}
	return price(p.Units[0].Price)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func roundsTable(runs []roundsRun) Table {
	rows := each(runs, func(x roundsRun) []string {
		return []string{fmt.Sprint(x.repeat + 1), fmt.Sprint(x.rounds), fmt.Sprint(x.early), fmt.Sprint(x.settled), num(x.price, 6), num(x.auction.Seconds(), 6), num(x.total.Seconds(), 6), x.why}
	})
	return Table{Name: "runs", About: "Every auction", Columns: []string{"repeat", "rounds", "early_close", "settled", "price", "auction_s", "total_s", "why"}, Rows: rows}
}

// roundsMeans are means by number of rounds.
type roundsMeans struct{ x, price, dev, auction, total []float64 }

func meansOf(runs []roundsRun, most int, soon bool) roundsMeans {
	var m roundsMeans
	for n := 1; n <= most; n++ {
		var prices, auctions, totals []float64
		for _, x := range runs {
			if x.rounds == n && x.early == soon && x.settled {
				prices, auctions, totals = append(prices, x.price), append(auctions, x.auction.Seconds()), append(totals, x.total.Seconds())
			}
		}
		if len(prices) == 0 {
			continue
		}
		m.x, m.price, m.dev = append(m.x, float64(n)), append(m.price, mean(prices)), append(m.dev, deviation(prices))
		m.auction, m.total = append(m.auction, mean(auctions)), append(m.total, mean(totals))
	}
	return m
}

func (l *Lab) roundsTell(r *Result, runs []roundsRun) {
	fixed, soon := meansOf(runs, l.Settings.Rounds, false), meansOf(runs, l.Settings.Rounds, true)
	r.roundsShapes(fixed, price(table4().price), l.Settings.RoundLimit.Seconds())
	r.roundsFigures(fixed, soon)
	prices, seconds := sourceRounds()
	t := Table{Name: "table4", About: "Table 4", Shown: true, Columns: []string{"rounds", "price, source", "price, fixed", "price, early close", "s, source", "s, fixed", "s, early close"}}
	for i := range fixed.x {
		row := []string{num(fixed.x[i], 0), num(prices[i], 2), num(fixed.price[i], 2), "", num(seconds[i], 2), num(fixed.total[i], 2), ""}
		if i < len(soon.x) {
			row[3], row[6] = num(soon.price[i], 2), num(soon.total[i], 4)
		}
		t.Rows = append(t.Rows, row)
	}
	r.table(t)
	r.note("Durations are from the order to the bank's receipt; the source's include a start-up of a few seconds.")
	r.note("Sellers follow section 6.2.3 as interpreted by specs 1.2. The prices result from it on these logs and are not fitted to the source.")
}

// roundsShapes checks the shapes, which need all ten rounds.
func (r *Result) roundsShapes(m roundsMeans, opening, limit float64) {
	if len(m.x) < 10 {
		r.note("Fewer than ten rounds: the shapes of table 4 are not checked.")
		return
	}
	falls := true
	for i := 1; i < 5; i++ {
		falls = falls && m.price[i] < m.price[i-1]
	}
	r.shape("mean price falls strictly over rounds 1..5", falls,
		fmt.Sprintf("%.2f %.2f %.2f %.2f %.2f", m.price[0], m.price[1], m.price[2], m.price[3], m.price[4]), "each below the one before")
	// The opening price is the current price before the first round.
	early, late := opening-m.price[4], m.price[4]-m.price[9]
	r.shape("fall over rounds 1..5", early >= .25*opening, fmt.Sprintf("%.1f %% of the opening price", 100*early/opening), "at least 25 %")
	r.shape("change from 5 to 10 rounds", math.Abs(late) < early/3, fmt.Sprintf("%.2f, %.1f %% of that fall", late, 100*late/early), "less than a third of that")
	slope, _, explained := fit(m.x, m.auction)
	r.shape("fixed rounds: duration linear", explained > .999, fmt.Sprintf("R² %.6f", explained), "R² above 0.999")
	r.shape("fixed rounds: seconds per round", math.Abs(slope-limit) < .1, fmt.Sprintf("%.2f s", slope), fmt.Sprintf("%.1f s", limit))
}

func (r *Result) roundsFigures(fixed, soon roundsMeans) {
	prices, seconds := sourceRounds()
	prices, seconds = prices[:len(fixed.x)], seconds[:len(fixed.x)]
	p := chart("Price and number of rounds", "bidding rounds", "mean sale price (credits per core-hour)")
	add(p, series{name: "fixed rounds", x: fixed.x, y: fixed.price, dev: fixed.dev, style: 0},
		series{name: "early close", x: soon.x, y: soon.price, style: 2, dashed: true},
		series{name: "source, table 4", x: fixed.x, y: prices, style: 1})
	p.Y.Min = 0
	whole(p, len(fixed.x))
	r.figure("fig11a-price", "Figure 11a, price: mean of the sale prices by number of rounds; bars show the standard deviation.", p)
	q := chart("Duration and number of rounds", "bidding rounds", "mean duration (s)")
	add(q, series{name: "fixed rounds", x: fixed.x, y: fixed.total, style: 0},
		series{name: "early close", x: soon.x, y: soon.total, style: 2, dashed: true},
		series{name: "source, table 4", x: fixed.x, y: seconds, style: 1})
	q.Y.Min = 0
	whole(q, len(fixed.x))
	q.Legend.Left = true
	r.figure("fig11a-duration", "Figure 11a, duration: from the order to the bank's receipt. With early close all are below one second.", q)
}

package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"

	"ramp/agents/user"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// sizes of the markets of scale, up to Settings.Resources.
func sizes(most int) []int {
	all := []int{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000}
	return slices.DeleteFunc(all, func(n int) bool { return n > most })
}

// sellersUpTo repeats the twenty sellers up to n, each time an hour later in their logs, and
// at most a day later.
func (l *Lab) sellersUpTo(n int) []seller {
	list := l.twenty()
	for i := len(list); i < n; i++ {
		s := list[i%len(Sites())]
		turn := i / len(Sites())
		s.name = fmt.Sprintf("%s-%d", s.name, turn+1)
		s.on.base += int64(turn%24) * 3600
		list = append(list, s)
	}
	return list[:n]
}

// size is one auction in a market with a number of resources.
type size struct {
	resources, repeat int
	everybody         bool // is called: no response budget
	settled           bool
	price, seconds    float64
	messages, bytes   int64
	proposals         int // maximum that the buyer received in one round
	answers           int // the same, with refusals
}

// Repeats by size: small markets vary with their start, and large ones take long.
const (
	scaleRepeats = 8
	scaleMany    = 2000 // resources; larger markets run once
)

// markets are the auctions to run, each with and without a response budget.
func (l *Lab) markets() []size {
	var list []size
	for _, n := range sizes(l.Settings.Resources) {
		repeats := scaleRepeats
		if n > scaleMany {
			repeats = 1
		}
		for i := range l.repeat(repeats) {
			list = append(list, size{resources: n, repeat: i, everybody: true}, size{resources: n, repeat: i})
		}
	}
	return list
}

// scale makes the request of table 4 in ever larger markets, with five rounds: of fixed
// length where calls go by gossip, otherwise with early close. It runs with and without a
// response budget (docs/decisions/0019), at the same market starts.
func scale(ctx context.Context, l *Lab, r *Result) error {
	if l.Crowd > 0 {
		return crowds(ctx, l, r)
	}
	list := l.markets()
	sellers := l.sellersUpTo(list[len(list)-1].resources)
	l.issue(1, sellers)
	runs, err := gather(ctx, l, "scale", len(list), func(i int) size { return l.size(sellers[:list[i].resources], list[i]) })
	columns := []string{"resources", "repeat", "response_budget", "settled", "price", "seconds", "messages", "bytes", "most_proposals_in_a_round", "most_answers_in_a_round"}
	r.table(Table{Name: "runs", About: "Every auction", Columns: columns, Rows: each(runs, func(x size) []string {
		return []string{
			fmt.Sprint(x.resources), fmt.Sprint(x.repeat + 1), x.budget(), fmt.Sprint(x.settled), num(x.price, 6), num(x.seconds, 6),
			fmt.Sprint(x.messages), fmt.Sprint(x.bytes), fmt.Sprint(x.proposals), fmt.Sprint(x.answers),
		}
	})})
	if err != nil {
		return err
	}
	r.scaleTell(sizes(l.Settings.Resources), runs)
	return nil
}

// budget is a run's budget, for tables.
func (x size) budget() string {
	if x.everybody {
		return "none"
	}
	return fmt.Sprint(auction.DefaultBudget)
}

// scaleRounds is the number of rounds after which prices fall little (002 §11.1).
const scaleRounds = 5

func (l *Lab) size(sellers []seller, x size) size {
	budget := auction.DefaultBudget
	if x.everybody {
		budget = user.AskEverybody
	}
	s := l.stage(play{seed: l.seed(x.repeat), offset: time.Duration(x.repeat) * l.Settings.Gap, sellers: sellers, users: 1, budget: budget})
	s.watch.quiet = true
	before := s.world.Stats()
	p := s.buy(0, "scale", message.Options{Rounds: scaleRounds, RoundLimit: l.Settings.RoundLimit}, job{"scale", 16, time.Hour, credits(70)})
	after := s.world.Stats()
	x.settled, x.price, x.seconds = p.Settled, paid(p), p.ElapsedMS/1000
	x.messages, x.bytes = after.Delivered-before.Delivered, after.Bytes-before.Bytes
	for _, n := range s.watch.answered {
		x.answers = max(x.answers, n)
	}
	for _, n := range s.watch.proposed {
		x.proposals = max(x.proposals, n)
	}
	return x
}

// scaled are the means of one series of scale, by number of resources.
type scaled struct {
	name                                string
	resources                           []float64
	price, seconds                      []float64
	messages, bytes, proposals, answers []float64
}

func scaledOf(name string, list []int, runs []size, everybody bool) scaled {
	s := scaled{name: name}
	for _, n := range list {
		var sums [6]float64
		count := 0.0
		for _, x := range runs {
			if x.resources != n || x.everybody != everybody || !x.settled {
				continue
			}
			count++
			for i, y := range [6]float64{x.price, x.seconds, float64(x.messages), float64(x.bytes), float64(x.proposals), float64(x.answers)} {
				sums[i] += y
			}
		}
		if count == 0 {
			continue
		}
		s.resources = append(s.resources, float64(n))
		for i, to := range []*[]float64{&s.price, &s.seconds, &s.messages, &s.bytes, &s.proposals, &s.answers} {
			*to = append(*to, sums[i]/count)
		}
	}
	return s
}

func (r *Result) scaleTell(list []int, runs []size) {
	all := scaledOf("everybody asked", list, runs, true)
	some := scaledOf(fmt.Sprintf("budget of %d", auction.DefaultBudget), list, runs, false)
	t := Table{Name: "means", About: "By number of resources", Shown: true, Columns: []string{"resources", "response budget", "price", "seconds", "messages", "bytes", "proposals in a round", "answers in a round"}}
	for i, word := range []string{"none", fmt.Sprint(auction.DefaultBudget)} {
		for j, n := range []scaled{all, some}[i].resources {
			s := []scaled{all, some}[i]
			t.Rows = append(t.Rows, []string{num(n, 0), word, num(s.price[j], 2), num(s.seconds[j], 3), num(s.messages[j], 0), num(s.bytes[j], 0), num(s.proposals[j], 0), num(s.answers[j], 0)})
		}
	}
	r.table(t)
	r.scaleFigures(all, some)
	r.scaleShapes(list, runs)
	r.note("Above %d resources, a buyer does not call every one directly. With a response budget it calls the most promising by their announced price bands, plus an eighth at random, in one more round than requested (docs/decisions/0019). Without one, it calls all by gossip, all may answer, and a round lasts until its limit.", auction.DefaultBudget)
	r.note("Bytes are those of sealed messages; a gossiped message counts once, no matter how often the mesh forwards it. Messages are those received by all agents.")
	r.note("The first 20 resources are those of table 2; further ones repeat them, each time an hour later in their logs.")
}

func (r *Result) scaleFigures(all, some scaled) {
	for _, f := range []struct {
		name, title, y, caption string
		of                      func(scaled) []float64
		log                     bool
	}{
		{"scale-messages", "Messages of one auction", "messages received", "Messages that all agents together received in one auction of five rounds, by the number of resources; both scales logarithmic.", func(s scaled) []float64 { return s.messages }, true},
		{"scale-bytes", "Bytes of one auction", "bytes sealed", "Bytes sealed in one auction, counting a gossiped message once; both scales logarithmic.", func(s scaled) []float64 { return s.bytes }, true},
		{"scale-proposals", "What a buyer receives", "most proposals in one round", "The most proposals that the buyer received in one round; both scales logarithmic.", func(s scaled) []float64 { return s.proposals }, true},
		{"scale-time", "Time of one auction", "time (s)", "From the order to the bank's receipt; both scales logarithmic.", func(s scaled) []float64 { return s.seconds }, true},
		{"scale-price", "Price found", "price (credits per core-hour)", "The price found; the resources' scale is logarithmic.", func(s scaled) []float64 { return s.price }, false},
	} {
		p := chart(f.title, "resources", f.y)
		add(p, series{name: all.name, x: all.resources, y: f.of(all), style: 1}, series{name: some.name, x: some.resources, y: f.of(some), style: 0, dashed: true})
		logarithmic(&p.X)
		p.Legend.Left = true
		if f.log {
			logarithmic(&p.Y)
			p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*2
		} else {
			p.Y.Min = 0
			roof(p, .25)
		}
		p.X.Tick.Marker = plot.ConstantTicks(each(all.resources, func(x float64) plot.Tick { return plot.Tick{Value: x, Label: num(x, 0)} }))
		r.figure(f.name, f.caption, p)
	}
}

// dearer is how far a price may exceed that of asking everybody.
const dearer = .01

// scaleShapes compares, for each market, the price with a budget with that of asking
// everybody at the same instant.
func (r *Result) scaleShapes(list []int, runs []size) {
	most, worst, at, unsold := 0, math.Inf(-1), 0, 0
	for _, n := range list {
		all, some := scaledOf("", []int{n}, runs, true), scaledOf("", []int{n}, runs, false)
		if len(all.price) == 0 || len(some.price) == 0 {
			unsold++
			continue
		}
		if ratio := some.price[0]/all.price[0] - 1; ratio > worst {
			worst, at = ratio, n
		}
	}
	for _, x := range runs {
		if !x.everybody {
			most = max(most, x.proposals)
		}
	}
	r.shape("with a response budget: price within 1 % of asking everybody", unsold == 0 && worst <= dearer,
		fmt.Sprintf("at most %+.1f %%, with %d resources", 100*worst, at), "at most 1 % dearer with every number of resources")
	r.shape(fmt.Sprintf("with a response budget: at most %d proposals in a round", auction.DefaultBudget), most <= auction.DefaultBudget,
		fmt.Sprintf("at most %d", most), fmt.Sprintf("at most %d", auction.DefaultBudget))
}

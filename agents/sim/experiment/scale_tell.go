package experiment

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"ramp/protocol/auction"
)

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
	r.note("More than %d resources are not all called one by one. With a response budget the most promising are, by the price bands that they told, and an eighth by lot, in one round more than was asked for (docs/decisions/0019). Without one, everybody is called by gossip and may answer, and a round lasts as long as its limit.", auction.DefaultBudget)
	r.note("Bytes are those that were sealed: a message by gossip counts once, whatever the mesh makes of it. Messages are those that were received, by anybody.")
	r.note("Up to 20 resources are those of table 2; beyond, the same again, each time an hour later in their logs.")
}

func (r *Result) scaleFigures(all, some scaled) {
	for _, f := range []struct {
		name, title, y, caption string
		of                      func(scaled) []float64
		log                     bool
	}{
		{"scale-messages", "Messages of one auction", "messages received", "Messages that all agents together received in one auction of five rounds, by the number of resources; both scales logarithmic.", func(s scaled) []float64 { return s.messages }, true},
		{"scale-bytes", "Bytes of one auction", "bytes sealed", "Bytes that were sealed in it, a gossiped message once; both scales logarithmic.", func(s scaled) []float64 { return s.bytes }, true},
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
		p.X.Tick.Marker = plot.ConstantTicks(scaleTicks(all.resources))
		r.figure(f.name, f.caption, p)
	}
}

// scaleTicks are the sizes that were tried.
func scaleTicks(resources []float64) []plot.Tick {
	var ticks []plot.Tick
	for _, x := range resources {
		ticks = append(ticks, plot.Tick{Value: x, Label: num(x, 0)})
	}
	return ticks
}

// dearer is by how much a price may exceed that of asking everybody.
const dearer = .01

// scaleShapes compares, market by market, what a budget finds with what asking
// everybody finds at the same instant.
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

package experiment

import (
	"context"
	"fmt"
	"time"

	"ramp/protocol/message"
)

// sizes of the markets of scale; Settings.Resources says up to which.
func sizes(most int) []int {
	var list []int
	for _, n := range []int{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000} {
		if n <= most {
			list = append(list, n)
		}
	}
	return list
}

// crew are n sellers: the twenty again and again, each time an hour later in
// their logs, a day at most.
func (l *Lab) crew(n int) []seller {
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

// size is one auction in a market of so many resources.
type size struct {
	resources, repeat int
	settled           bool
	price, seconds    float64
	messages, bytes   int64
	answers           int // most that the buyer received in one round
}

// scale is the request of table 4 in ever larger markets: five fixed rounds where
// calls go by gossip, early close where they do not.
func scale(ctx context.Context, l *Lab, r *Result) error {
	list, repeats := sizes(l.Settings.Resources), l.repeat(3)
	crew := l.crew(list[len(list)-1])
	l.issue(1, crew)
	runs, err := gather(ctx, l, "scale", len(list)*repeats, func(i int) size {
		return l.size(crew[:list[i/repeats]], size{resources: list[i/repeats], repeat: i % repeats})
	})
	t := Table{Name: "runs", About: "Every auction", Columns: []string{"resources", "repeat", "response_budget", "settled", "price", "seconds", "messages", "bytes", "most_answers_in_a_round"}}
	for _, x := range runs {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(x.resources), fmt.Sprint(x.repeat + 1), budget, fmt.Sprint(x.settled), num(x.price, 6), num(x.seconds, 6),
			fmt.Sprint(x.messages), fmt.Sprint(x.bytes), fmt.Sprint(x.answers),
		})
	}
	r.table(t)
	if err != nil {
		return err
	}
	r.scaleTell(list, runs)
	return nil
}

// budget says which response budget the runs had: these are made without one, so
// that everybody answers.
const budget = "none"

// scaleRounds is where prices no longer fall much (002 §11.1).
const scaleRounds = 5

func (l *Lab) size(crew []seller, x size) size {
	s := l.stage(play{seed: l.seed(x.repeat), offset: time.Duration(x.repeat) * l.Settings.Gap, sellers: crew, users: 1})
	before := s.world.Stats()
	p := s.buy(0, "scale", message.Options{Rounds: scaleRounds, RoundLimit: l.Settings.RoundLimit}, job{"scale", 16, time.Hour, credits(70)})
	after := s.world.Stats()
	x.settled, x.price, x.seconds = p.Settled, paid(p), p.ElapsedMS/1000
	x.messages, x.bytes = after.Delivered-before.Delivered, after.Bytes-before.Bytes
	for _, n := range s.watch.proposed {
		x.answers = max(x.answers, n)
	}
	return x
}

func (r *Result) scaleTell(list []int, runs []size) {
	messages, bytes := series{name: "messages received", style: 0}, series{name: "bytes sent", style: 1}
	answers, seconds := series{name: "most answers to one call", style: 2}, series{name: "time (s)", style: 3}
	t := Table{Name: "means", About: "By number of resources", Shown: true, Columns: []string{"resources", "price", "seconds", "messages", "bytes", "answers in a round"}}
	for _, n := range list {
		var p, s, m, b, a []float64
		for _, x := range runs {
			if x.resources == n && x.settled {
				p, s, m, b, a = append(p, x.price), append(s, x.seconds), append(m, float64(x.messages)), append(b, float64(x.bytes)), append(a, float64(x.answers))
			}
		}
		if len(p) == 0 {
			continue
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(n), num(mean(p), 2), num(mean(s), 3), num(mean(m), 0), num(mean(b), 0), num(mean(a), 0)})
		for _, x := range []struct {
			to *series
			y  []float64
		}{{&messages, m}, {&bytes, b}, {&answers, a}, {&seconds, s}} {
			x.to.x, x.to.y = append(x.to.x, float64(n)), append(x.to.y, mean(x.y))
		}
	}
	r.table(t)
	c := chart("Size of the market", "resources", "per auction")
	add(c, messages, bytes, answers, seconds)
	logarithmic(&c.X)
	logarithmic(&c.Y)
	c.Legend.Left = true
	r.figure("scale", "Messages, bytes, answers and time of one auction of five rounds, on logarithmic scales.", c)
	r.note("Without a response budget every seller that a call reaches answers it, and a buyer receives up to as many answers as there are resources. With more than 64 resources calls go by gossip, and their rounds last as long as the round limit.")
	r.note("Bytes are those that were sealed: a message by gossip counts once, whatever the mesh makes of it.")
}

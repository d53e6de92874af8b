package experiment

import (
	"context"
	"fmt"
	"time"
)

// crowd is one run of figure 12 with a number of users at once.
type crowd struct {
	users, repeat int
	workstation   bool
	response      float64 // mean, in seconds
	round         float64
	total         float64
	settled       int
}

// usersRun makes figure 12: 1..30 users order at the same instant, three times, with all
// agents on one workstation as in the source, and with each on its own host.
func usersRun(ctx context.Context, l *Lab, r *Result) error {
	sellers, repeats, most := l.twenty(), l.repeat(3), l.Settings.Users
	l.issue(most, sellers)
	runs, err := gather(ctx, l, "users", 2*repeats*most, func(i int) crowd {
		return l.crowd(sellers, crowd{users: 1 + i%most, repeat: i / most / 2, workstation: i/most%2 == 0})
	})
	rows := each(runs, func(x crowd) []string {
		return []string{fmt.Sprint(x.users), fmt.Sprint(x.repeat + 1), fmt.Sprint(x.workstation), num(x.response, 6), num(x.round, 6), num(x.total, 6), fmt.Sprint(x.settled)}
	})
	r.table(Table{Name: "runs", About: "Every run", Columns: []string{"users", "repeat", "one_workstation", "response_s", "round_s", "total_s", "settled"}, Rows: rows})
	if err != nil {
		return err
	}
	r.crowdTell(runs, most)
	return nil
}

func (l *Lab) crowd(sellers []seller, x crowd) crowd {
	s := l.stage(play{seed: l.seed(x.repeat), offset: time.Duration(x.repeat) * l.Settings.Gap, sellers: sellers, users: x.users, workstation: x.workstation})
	s.watch.quiet = true
	id := func(u int) string { return fmt.Sprintf("crowd-%d", u+1) }
	for u := range x.users {
		s.order(u, id(u), early(workRounds, longRound), job{"single", 16, time.Hour, credits(70)})
	}
	s.await(x.users)
	var responses, rounds, totals []float64
	for u, o := range s.owner {
		p := o.done[id(u)]
		if p.Settled {
			x.settled++
		}
		rounds, totals = append(rounds, timesOf(p).round), append(totals, p.ElapsedMS/1000)
		responses = append(responses, each(s.watch.answers[id(u)], time.Duration.Seconds)...)
	}
	x.response, x.round, x.total = mean(responses), mean(rounds), mean(totals)
	return x
}

// by returns means over the repeats, by number of users.
func by(runs []crowd, most int, workstation bool, of func(crowd) float64) series {
	var s series
	for n := 1; n <= most; n++ {
		var list []float64
		for _, x := range runs {
			if x.users == n && x.workstation == workstation {
				list = append(list, of(x))
			}
		}
		s.x, s.y, s.dev = append(s.x, float64(n)), append(s.y, mean(list)), append(s.dev, deviation(list))
	}
	return s
}

func (r *Result) crowdTell(runs []crowd, most int) {
	for _, f := range []struct {
		name, title, y, caption string
		of                      func(crowd) float64
	}{
		{"fig12a", "Response time and users at once", "mean response time (s)", "Figure 12a: from a call for proposals to a resource's answer.", func(x crowd) float64 { return x.response }},
		{"fig12b", "Round time and users at once", "mean duration of a round (s)", "Figure 12b: duration of a bidding round.", func(x crowd) float64 { return x.round }},
	} {
		p := chart(f.title, "users at once", f.y)
		one, own := by(runs, most, true, f.of), by(runs, most, false, f.of)
		one.name, own.name, own.style = "all agents on one workstation", "every agent on its own host", 1
		add(p, one, own)
		p.Y.Min = 0
		roof(p, .2)
		p.Legend.Left = true
		r.figure(f.name, f.caption+" Bars show the standard deviation.", p)
		if f.name == "fig12a" {
			r.linear("response linear in users, one workstation", one)
			r.spread(own)
		} else {
			r.steepness(one)
		}
	}
	r.note("The processing time of a message is a setting (processing, unit_time). The result is how it adds up when agents wait for each other.")
}

func (r *Result) linear(name string, s series) {
	if len(s.x) >= 3 {
		slope, _, explained := fit(s.x, s.y)
		r.shape(name, slope > 0 && explained > .95, fmt.Sprintf("%.5f s per user, R² %.4f", slope, explained), "rising, R² above 0.95")
	}
}

// spread reports how response times grow if agents do not share a processor, a case that the
// source did not have.
func (r *Result) spread(s series) {
	if len(s.x) >= 3 {
		slope, _, explained := fit(s.x, s.y)
		r.fact("response time per further user, own hosts", fmt.Sprintf("%.5f s, R² %.3f", slope, explained), "-")
	}
}

// steepness reports how round times grow up to ten users and beyond.
func (r *Result) steepness(s series) {
	if len(s.x) < 20 {
		return
	}
	first, _, _ := fit(s.x[:10], s.y[:10])
	later, _, _ := fit(s.x[9:], s.y[9:])
	r.fact("round time per further user, up to 10 and beyond", fmt.Sprintf("%.4f s and %.4f s", first, later), "steep to about 10, then flatter (unexplained)")
}

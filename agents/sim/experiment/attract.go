package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ramp/protocol/message"
)

// probeGap is between two looks at the resources' decrements.
const probeGap = 10 * time.Minute

// probe asks for a price without buying, from so high that no minimum cuts the
// decrement.
func probe() job { return job{"probe", 16, 5 * time.Minute, credits(100)} }

// look is what one resource would take off a price at an instant.
type look struct {
	minute    float64
	resource  string
	decrement float64
}

// attractiveness is figures 8b and 9b: a day of one market in which the jobs of
// table 3 are bought in turn, and between them every resource is asked.
func attractiveness(ctx context.Context, l *Lab, r *Result) error {
	sellers := l.twenty()
	l.issue(1, sellers)
	var looks []look
	var bids []bid
	steps := l.Settings.Hours * int(time.Hour/probeGap)
	s := l.stage(play{seed: l.seed(0), sellers: sellers, users: 1})
	var err error
	for i := range steps {
		if err = ctx.Err(); err != nil {
			break
		}
		looks = append(looks, s.look(i)...)
		id := fmt.Sprintf("job-%d", i)
		s.buy(0, id, l.fixed(workRounds), table3()[i%len(table3())])
		bids = append(bids, s.watch.of(id)...)
		s.watch.bids = nil
		s.rest(max(0, time.Duration(i+1)*probeGap-s.world.Elapsed()))
		l.Progress("attractiveness", i+1, steps)
	}
	r.table(looksTable(looks))
	r.table(offersTable(bids))
	if err != nil {
		return err
	}
	r.attractTell(looks, bids)
	return nil
}

func (s *stage) look(i int) []look {
	id := fmt.Sprintf("probe-%d", i)
	minute := s.world.Elapsed().Minutes()
	s.buy(0, id, message.Options{Rounds: 1, QuoteOnly: true, RoundLimit: 5 * time.Second}, probe())
	var list []look
	for _, b := range s.watch.of(id) {
		list = append(list, look{minute, b.seller, price(b.standing - b.price)})
	}
	return list
}

func looksTable(looks []look) Table {
	t := Table{Name: "decrements", About: "Every decrement", Columns: []string{"minute", "resource", "decrement"}}
	for _, x := range looks {
		t.Rows = append(t.Rows, []string{num(x.minute, 3), x.resource, num(x.decrement, 6)})
	}
	return t
}

func offersTable(bids []bid) Table {
	t := Table{Name: "offers", About: "Every offer to a job", Columns: []string{"minute", "job", "round", "resource", "standing", "offer"}}
	for _, b := range bids {
		t.Rows = append(t.Rows, []string{num(b.at.Minutes(), 3), b.conversation, fmt.Sprint(b.round), b.seller, b.standing.String(), b.price.String()})
	}
	return t
}

// shownResources is how many lines a figure bears.
const shownResources = 8

func (r *Result) attractTell(looks []look, bids []bid) {
	by := map[string]*series{}
	for _, x := range looks {
		if by[x.resource] == nil {
			by[x.resource] = &series{name: x.resource, bare: true}
		}
		by[x.resource].x = append(by[x.resource].x, x.minute/60)
		by[x.resource].y = append(by[x.resource].y, x.decrement)
	}
	order := r.attractMeans(by)
	p := chart("Attractiveness", "simulated time (h)", "decrement per round (credits per core-hour)")
	for i, name := range order[:min(shownResources, len(order))] {
		s := *by[name]
		s.style, s.dashed = i, i%2 == 1
		add(p, s.broken(1.5*probeGap.Hours())...)
	}
	p.Y.Min = 0
	roof(p, .6)
	r.figure("fig8b", "Figure 8b: by how much the eight most attractive resources would lower a price in one round; a gap means that no offer was made.", p)
	r.offersFigure(bids, order)
	if len(order) > 1 {
		r.fact("most attractive resources", order[0]+", "+order[1], "curie1, curie3")
	}
}

// attractMeans is the table of mean decrements, and the resources in its order.
func (r *Result) attractMeans(by map[string]*series) []string {
	var order []string
	for _, s := range Sites() {
		if by[s.Name] != nil {
			order = append(order, s.Name)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		switch x, y := mean(by[a].y), mean(by[b].y); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	t := Table{Name: "means", About: "Mean decrement", Shown: true, Columns: []string{"resource", "mean decrement", "deviation", "looks"}}
	for _, n := range order {
		t.Rows = append(t.Rows, []string{n, num(mean(by[n].y), 3), num(deviation(by[n].y), 3), fmt.Sprint(len(by[n].y))})
	}
	r.table(t)
	return order
}

// offersFigure is figure 9b, of the four most attractive resources.
func (r *Result) offersFigure(bids []bid, order []string) {
	p := chart("Offer prices over time", "simulated time (h)", "last offer in an auction (credits per core-hour)")
	for i, name := range order[:min(4, len(order))] {
		s := series{name: name, style: i}
		last := ""
		for _, b := range bids {
			switch {
			case b.seller != name || b.round > workRounds:
			case b.conversation == last:
				s.y[len(s.y)-1] = price(b.price)
			default:
				last = b.conversation
				s.x, s.y = append(s.x, b.at.Hours()), append(s.y, price(b.price))
			}
		}
		add(p, s)
	}
	p.Y.Min = 0
	roof(p, .35)
	r.figure("fig9b", "Figure 9b: the last offer of four resources in each auction of the jobs of table 3.", p)
}

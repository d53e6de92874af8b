package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/plot"

	"ramp/protocol"
	"ramp/protocol/message"
)

// probeGap is the time between two samples of the resources' decrements.
const probeGap = 10 * time.Minute

// probe requests prices without buying, from a price so high that no minimum limits the decrement.
func probe() job { return job{"probe", 16, 5 * time.Minute, credits(100)} }

// look is a sample: one resource's decrement at an instant.
type look struct {
	minute    float64
	resource  string
	decrement float64
}

// attractiveness makes figures 8b and 9b: a day of one market in which the jobs of table 3
// are bought in turn, and all resources are probed between them.
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
	return each(s.watch.of(id), func(b bid) look { return look{minute, b.seller, price(b.standing - b.price)} })
}

func looksTable(looks []look) Table {
	rows := each(looks, func(x look) []string { return []string{num(x.minute, 3), x.resource, num(x.decrement, 6)} })
	return Table{Name: "decrements", About: "Every decrement", Columns: []string{"minute", "resource", "decrement"}, Rows: rows}
}

func offersTable(bids []bid) Table {
	rows := each(bids, func(b bid) []string {
		return []string{num(b.at.Minutes(), 3), b.conversation, fmt.Sprint(b.round), b.seller, b.standing.String(), b.price.String()}
	})
	return Table{Name: "offers", About: "Every offer to a job", Columns: []string{"minute", "job", "round", "resource", "standing", "offer"}, Rows: rows}
}

// shownResources is the number of resources whose decrements the figures show, and
// offeredResources the number whose offers they show.
const (
	shownResources   = 8
	offeredResources = 4
)

func (r *Result) attractTell(looks []look, bids []bid) {
	by := map[string]*series{}
	for _, x := range looks {
		if by[x.resource] == nil {
			by[x.resource] = &series{name: x.resource, bare: true}
		}
		*by[x.resource] = by[x.resource].with(x.minute/60, x.decrement)
	}
	order := r.attractMeans(by)
	r.decrementsFigure(by, order[:min(shownResources, len(order))])
	r.offersFigure(bids, order)
	if len(order) > 1 {
		r.fact("most attractive resources", order[0]+", "+order[1], "curie1, curie3")
	}
}

// attractMeans makes the table of mean decrements, and returns the resources in its order.
func (r *Result) attractMeans(by map[string]*series) []string {
	order := slices.DeleteFunc(siteNames(), func(name string) bool { return by[name] == nil })
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(mean(by[b].y), mean(by[a].y)) })
	rows := each(order, func(n string) []string {
		return []string{n, num(mean(by[n].y), 3), num(deviation(by[n].y), 3), fmt.Sprint(len(by[n].y))}
	})
	r.table(Table{Name: "means", About: "Mean decrement", Shown: true, Columns: []string{"resource", "mean decrement", "deviation", "looks"}, Rows: rows})
	return order
}

// decrementsFigure makes figure 8b: one plot for each resource, since eight lines in one plot
// would be unreadable.
func (r *Result) decrementsFigure(by map[string]*series, names []string) {
	var list []*plot.Plot
	most := 0.0
	for _, name := range names {
		most = max(most, slices.Max(by[name].y))
	}
	for i, name := range names {
		p, s := tile(name), *by[name]
		s.name = ""
		add(p, s.broken(1.5*probeGap.Hours())...)
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(r.Settings.Hours), 0, most
		edges(p, i, len(names), 4, "simulated time (h)", "decrement")
		list = append(list, p)
	}
	r.tiles("fig8b", "Figure 8b: decrement of one round of the eight most attractive resources, in credits per core-hour, over simulated hours; a gap means no offer.", 4, list)
}

// edges labels the axes of a tile at the left or the lower edge of the figure.
func edges(p *plot.Plot, i, all, columns int, x, y string) {
	if i+columns >= all {
		p.X.Label.Text = x
	}
	if i%columns == 0 {
		p.Y.Label.Text = y
	}
}

// offersOpening is the opening price of the jobs whose offers figure 9b shows: four jobs of
// table 3, which all start in an hour.
const offersOpening = 55

// offersFigure makes figure 9b, for the four most attractive resources. It shows one opening
// price, since offers to others are not comparable.
func (r *Result) offersFigure(bids []bid, order []string) {
	var list []*plot.Plot
	order = order[:min(offeredResources, len(order))]
	for i, name := range order {
		s := lastOffers(bids, name)
		p := tile(name)
		add(p, level("", float64(siteOf(name).Start), r.Settings.Hours, 7), level("", float64(siteOf(name).Min), r.Settings.Hours, 1), s)
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(r.Settings.Hours), 0, 85
		edges(p, i, len(order), 2, "simulated time (h)", "last offer")
		list = append(list, p)
	}
	r.tiles("fig9b", fmt.Sprintf("Figure 9b: the last offer of four resources in each auction of the jobs of table 3 that open at %d, in credits per core-hour, over simulated hours; dashed: the resource's start and minimum price.", offersOpening), 2, list)
}

// level is a horizontal dashed line.
func level(name string, y float64, hours, style int) series {
	return series{name: name, x: []float64{0, float64(hours)}, y: []float64{y, y}, style: style, dashed: true, bare: true}
}

// lastOffers are a resource's last offers in the auctions of jobs that open at offersOpening.
func lastOffers(bids []bid, name string) series {
	s := series{style: 0}
	last, opening := "", map[string]protocol.Credits{}
	for _, b := range bids {
		if _, known := opening[b.conversation]; !known {
			opening[b.conversation] = b.standing
		}
		switch {
		case b.seller != name || b.round > workRounds || opening[b.conversation] != credits(offersOpening):
		case b.conversation == last:
			s.y[len(s.y)-1] = price(b.price)
		default:
			last = b.conversation
			s.x, s.y = append(s.x, b.at.Hours()), append(s.y, price(b.price))
		}
	}
	return s
}

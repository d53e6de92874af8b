package experiment

import (
	"context"
	"fmt"
	"math"
)

// pricingRun is figure 10: the mean offer of each resource in the auctions of
// table 3, beside its start and minimum price.
func pricingRun(ctx context.Context, l *Lab, r *Result) error {
	runs, err := l.works(ctx, l.twenty(), "pricing")
	r.table(bidTable(runs))
	if err != nil {
		return err
	}
	offers, last := map[string][]float64{}, map[string][]float64{}
	for _, x := range runs {
		final := map[string]float64{}
		for _, b := range x.bids {
			if b.round <= workRounds {
				offers[b.seller] = append(offers[b.seller], price(b.price))
				final[b.seller] = price(b.price)
			}
		}
		for name, y := range final { // in any order: each goes to a list of its own
			last[name] = append(last[name], y)
		}
	}
	inside, near := within(last)
	r.fact("counting only the last offer of an auction", fmt.Sprintf("%d of %d between minimum and start, %d nearer the minimum", inside, len(last), near), "-")
	r.note("A seller asks the standing price less its decrement, so where users open above a seller's start price its first offers are above it too: that is what the rule says.")
	l.pricingTell(r, offers)
	return nil
}

func (l *Lab) pricingTell(r *Result, offers map[string][]float64) {
	groups := []series{{name: "start price", style: 7}, {name: "mean offer", style: 0}, {name: "minimum price", style: 1}}
	t := Table{Name: "means", About: "By resource", Shown: true, Columns: []string{"resource", "start", "mean offer", "deviation", "minimum", "offers"}}
	var names []string
	between, nearer := within(offers)
	for _, s := range Sites() {
		m := mean(offers[s.Name])
		names = append(names, s.Name)
		for i, y := range []float64{float64(s.Start), m, float64(s.Min)} {
			groups[i].y = append(groups[i].y, y)
		}
		t.Rows = append(t.Rows, []string{s.Name, fmt.Sprint(s.Start), num(m, 2), num(deviation(offers[s.Name]), 2), fmt.Sprint(s.Min), fmt.Sprint(len(offers[s.Name]))})
	}
	r.table(t)
	p := chart("Mean offers", "", "price (credits per core-hour)")
	bars(p, names, groups)
	roof(p, .3)
	r.figure("fig10", "Figure 10: the mean offer of each resource beside its start and minimum price; no bar: it made no offer.", p)
	r.shape("mean offers lie between minimum and start", between == len(offers), fmt.Sprintf("%d of %d resources that bid", between, len(offers)), "all")
	r.shape("mean offers lie nearer the minimum", 2*nearer > len(offers), fmt.Sprintf("%d of %d resources that bid", nearer, len(offers)), "most")
}

// within counts resources whose mean offer lies between their minimum and start
// price, and those for which it lies nearer the minimum.
func within(offers map[string][]float64) (between, nearer int) {
	for _, s := range Sites() {
		m := mean(offers[s.Name])
		if math.IsNaN(m) {
			continue
		}
		if m >= float64(s.Min) && m <= float64(s.Start) {
			between++
		}
		if m-float64(s.Min) < float64(s.Start)-m {
			nearer++
		}
	}
	return between, nearer
}

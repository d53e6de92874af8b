package experiment

import (
	"context"
	"fmt"
	"math"

	"ramp/agents/resource/pricing"
)

// pricingRun makes figure 10: the mean offer of each resource in the auctions of table 3,
// with its start and minimum price; and once more with the rule of live sites.
func pricingRun(ctx context.Context, l *Lab, r *Result) error {
	for _, rule := range []pricing.Rule{pricing.Ramp, pricing.List} {
		sellers, named := l.twenty(), ""
		for i := range sellers {
			sellers[i].band.Rule = rule
		}
		if rule == pricing.List {
			named = "list-"
		}
		runs, err := l.works(ctx, sellers, "pricing: "+string(rule))
		t := bidTable(runs)
		t.Name = named + t.Name
		r.table(t)
		if err != nil {
			return err
		}
		o := offered{map[string][]float64{}, map[string][]float64{}, map[string][]float64{}}
		for _, x := range runs {
			o.add(x)
		}
		r.pricingTell(o, rule, named)
		if rule == pricing.Ramp {
			r.pricingWhy(o)
		}
	}
	return nil
}

// offered has prices by resource: of all offers, of the last offer in each auction, and of
// offers when the current price was not above the resource's start price.
type offered struct {
	all, last, low map[string][]float64
}

func (o offered) add(x workRun) {
	final := map[string]float64{}
	for _, b := range x.bids {
		if b.round > workRounds {
			continue
		}
		y := price(b.price)
		o.all[b.seller] = append(o.all[b.seller], y)
		if price(b.standing) <= float64(siteOf(b.seller).Start) {
			o.low[b.seller] = append(o.low[b.seller], y)
		}
		final[b.seller] = y
	}
	for name, y := range final { // in any order: each goes to a list of its own
		o.last[name] = append(o.last[name], y)
	}
}

func (r *Result) pricingTell(o offered, rule pricing.Rule, named string) {
	start, least := series{name: "start price", style: 2, points: true}, series{name: "minimum price", style: 1, points: true}
	all := series{name: "mean offer and its deviation", style: 0, points: true, dev: []float64{}}
	t := Table{Name: named + "means", About: "By resource, pricing: " + string(rule), Shown: true, Columns: []string{"resource", "start", "mean offer", "deviation", "mean last offer", "minimum", "offers", "of these to a price above its start price"}}
	for i, s := range Sites() {
		start, least = start.with(float64(i), float64(s.Start)), least.with(float64(i), float64(s.Min))
		list := o.all[s.Name]
		all = all.sampled(float64(i), list)
		t.Rows = append(t.Rows, []string{
			s.Name, fmt.Sprint(s.Start), num(mean(list), 2), num(deviation(list), 2), num(mean(o.last[s.Name]), 2), fmt.Sprint(s.Min),
			fmt.Sprint(len(list)), num(100*float64(len(list)-len(o.low[s.Name]))/float64(len(list)), 0) + " %",
		})
	}
	r.table(t)
	p := chart("Mean offers", "", "price (credits per core-hour)")
	add(p, start, all, least)
	nominal(p, siteNames())
	p.Y.Min = 0
	roof(p, .3)
	r.figure(named+"fig10", "Figure 10: the mean offer of each resource between its start and minimum price, with pricing: "+string(rule)+"; no dot: it made no offer.", p)
	between, nearer := within(o.all)
	words := map[pricing.Rule]string{pricing.List: "list prices: "}[rule]
	r.shape(words+"mean offers lie between minimum and start", between == len(o.all), fmt.Sprintf("%d of %d resources that bid", between, len(o.all)), "all")
	r.shape(words+"mean offers lie nearer the minimum", 2*nearer > len(o.all), fmt.Sprintf("%d of %d resources that bid", nearer, len(o.all)), "most")
}

// pricingWhy reports what the mean offers depend on.
func (r *Result) pricingWhy(o offered) {
	inside, near := within(o.last)
	r.fact("counting only the last offer of an auction", fmt.Sprintf("%d of %d between minimum and start, %d nearer the minimum", inside, len(o.last), near), "-")
	inside, near = within(o.low)
	r.fact("counting only offers to a price that was not above the seller's start price", fmt.Sprintf("%d of %d between minimum and start, %d nearer the minimum", inside, len(o.low), near), "-")
	above, all := 0, 0
	for name, list := range o.all { // in any order: it is a sum
		above, all = above+len(list)-len(o.low[name]), all+len(list)
	}
	r.fact("offers to a price above the seller's start price", fmt.Sprintf("%.0f %% of %d", 100*float64(above)/float64(max(1, all)), all), "-")
	r.note("A seller offers the current price minus its decrement (section 6.2.3), independent of its start price. So if a user opens above a seller's start price, the first offers are above it too. This must hold for the source as well: its table 4 has a mean sale price of 66.00 after one round that opened at 70, so no seller offered less, though ten of the twenty have start prices of 33 to 55. Its text says that offers lie roughly between the two (section 11.1).")
}

// within counts the resources whose mean offer lies between their minimum and start price,
// and those whose mean offer is nearer to the minimum.
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

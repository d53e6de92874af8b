package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// stall is a seller of a random market. Its machine is equally busy at all times.
type stall struct {
	pricing.Band                  // as it claims
	least        protocol.Credits // its true minimum
	busy, cores  int
}

// Ask is the asking price of an auction.Pricing.
func (s stall) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	return s.Band.Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
}

// Limits returns the claimed start price and minimum.
func (s stall) Limits() (start, least protocol.Credits) { return s.Start, s.Min }

// Free returns the idle cores.
func (s stall) Free(_, _ time.Time) int { return s.cores - s.busy }

// Load returns the busy cores, and all cores.
func (s stall) Load(time.Time) (busy, capacity int) { return s.busy, s.cores }

// Earliest returns the first start of a job.
func (s stall) Earliest(cores int, _ time.Duration, from, _ time.Time) (time.Time, bool) {
	return from, cores <= s.Free(from, from)
}

// bazaar is a random market for one request.
type bazaar struct {
	stalls  []stall
	worth   protocol.Credits // of a core-hour to the buyer
	ceiling protocol.Credits // that the buyer names
	units   int              // of equal size
}

// bazaarCores are the cores of a request, for an hour.
const bazaarCores = 16

// newBazaar draws prices as in 002's table 2. The machines of every second market are idle.
func newBazaar(r *rand.Rand) bazaar {
	b := bazaar{worth: credits(30 + r.IntN(71)), units: 1}
	b.ceiling = b.worth
	idle := r.IntN(2) == 0
	for range 2 + r.IntN(7) {
		s := stall{least: credits(25 + r.IntN(41)), cores: bazaarCores << r.IntN(5)}
		s.Band = pricing.Band{Min: s.least, Start: s.least + credits(3+r.IntN(40)), Rounds: pricing.DefaultRounds}
		if !idle {
			s.busy = s.cores * r.IntN(100) / 100
		}
		b.stalls = append(b.stalls, s)
	}
	return b
}

func (b bazaar) idle() bool {
	return !slices.ContainsFunc(b.stalls, func(s stall) bool { return s.busy > 0 })
}

// lot is what one stall sells.
type lot struct {
	stall, units int
	pay          protocol.Credits // for these units, as if each had one core
}

// rule decides who sells at which price; no lots: nothing is bought.
type rule struct {
	name  string
	award func(b bazaar) []lot
}

func rules() []rule {
	live := func(r pricing.Rule, rounds int) func(b bazaar) []lot {
		return func(b bazaar) []lot { return b.auction(r, rounds) }
	}
	return []rule{
		{"list", live(pricing.List, 0)}, {"ramp", live(pricing.Ramp, 0)}, {"ramp, 3 rounds", live(pricing.Ramp, workRounds)},
		{"posted", bazaar.posted}, {"vickrey", bazaar.vickrey},
	}
}

// auction bids with the machines of live agents, whose answers take no time. With 0
// rounds it goes on until nobody improves.
func (b bazaar) auction(kind pricing.Rule, rounds int) []lot {
	now, sellers, index := market.Dawn, map[protocol.AgentID]*auction.Sellers{}, map[protocol.AgentID]int{}
	text := document(now, slices.Repeat([]job{{"unit", bazaarCores / b.units, time.Hour, b.ceiling}}, b.units)...)
	doc, err := auction.Read(text)
	must(err)
	cfg := auction.BuyerConfig{
		Self: "buyer", Conversation: "c", Document: text, Rounds: rounds, RoundLimit: protocol.DefaultRoundLimit, Objective: protocol.ObjectiveCost,
		Terms: []protocol.Terms{{Bank: market.BankName, Currency: market.Currency}}, Modes: []protocol.Mode{protocol.ModeOnReservation},
	}
	for _, q := range doc.Requests {
		cfg.Wants = append(cfg.Wants, auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores})
	}
	for i, s := range b.stalls {
		s.Rule = kind
		id := protocol.AgentID(market.SiteName(i + 1))
		cfg.Sellers, index[id] = append(cfg.Sellers, id), i
		sellers[id] = auction.NewSellers(auction.SellerConfig{
			Self: id, Properties: protocol.Properties{Cores: s.cores}, Terms: cfg.Terms, Modes: cfg.Modes, Pricing: s, Validity: protocol.OfferValidity,
			Lead: auction.DefaultLead, Horizon: auction.DefaultHorizon, Read: func([]byte) (auction.Document, error) { return doc, nil },
		})
	}
	buyer, out := auction.NewBuyer(now, cfg, auction.NewTiming())
	for len(out.Send) > 0 {
		calls := out.Send
		out = protocol.Output{}
		for _, m := range calls {
			for _, id := range m.Receivers {
				a, _ := sellers[id].Call(now, m, m.Body.(message.CallForProposals), b.stalls[index[id]])
				out = out.Join(buyer.Receive(now, m.Reply(id, a.Performative, a.Body)))
			}
		}
	}
	var lots []lot
	if buyer.State() == auction.Awarded {
		for _, bid := range buyer.Result().Bids {
			for _, it := range bid.Offer.Items {
				lots = append(lots, lot{index[bid.Seller], 1, it.Price})
			}
		}
	}
	return lots
}

// cheapest covers all units at the least sum of prices, without one stall. If there is
// no set within the ceiling, there are no lots, and the sum is that of the ceilings.
func (b bazaar) cheapest(without int, ask func(stall) protocol.Credits) (lots []lot, sum protocol.Credits) {
	order := make([]int, len(b.stalls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return int(ask(b.stalls[x]) - ask(b.stalls[y])) })
	left := b.units
	for _, i := range order {
		s := b.stalls[i]
		if n := min(left, (s.cores-s.busy)*b.units/bazaarCores); n > 0 && i != without {
			left -= n
			pay := ask(s) * protocol.Credits(n)
			lots, sum = append(lots, lot{i, n, pay}), sum+pay
		}
	}
	if most := b.ceiling * protocol.Credits(b.units); left > 0 || sum > most {
		return nil, most
	}
	return lots, sum
}

// posted buys from the cheapest stalls. Each posts the middle of its band.
func (b bazaar) posted() []lot {
	lots, _ := b.cheapest(-1, func(s stall) protocol.Credits { return middle(s.Band) })
	return lots
}

// vickrey buys at the least sum of claimed minima, and pays each stall i what the
// others would have cost more without it: C(N∖i) − (C(N) − c_i).
func (b bazaar) vickrey() []lot {
	claimed := func(s stall) protocol.Credits { return s.Min }
	lots, sum := b.cheapest(-1, claimed)
	for i := range lots {
		_, without := b.cheapest(lots[i].stall, claimed)
		lots[i].pay += without - sum
	}
	return lots
}

// deviance is a way not to be truthful; the first of a market's sellers deviates, or its buyer.
type deviance struct {
	name, who string
	change    func(b *bazaar, s *stall)
}

func deviances() []deviance {
	return []deviance{
		{"none", "", func(*bazaar, *stall) {}},
		{"claims the middle of its band as minimum", "seller", func(_ *bazaar, s *stall) { s.Min = middle(s.Band) }},
		{"starts half as high again", "seller", func(_ *bazaar, s *stall) { s.Start += s.Start / 2 }},
		{"starts at its minimum", "seller", func(_ *bazaar, s *stall) { s.Start = s.Min }},
		{"barely undercuts", "seller", func(_ *bazaar, s *stall) { s.Rounds = pricing.MaxRounds }},
		{"names twice the worth as ceiling", "buyer", func(b *bazaar, _ *stall) { b.ceiling *= 2 }},
		{"names 80 % of the worth", "buyer", func(b *bazaar, _ *stall) { b.ceiling = b.ceiling * 4 / 5 }},
		{"splits its request in four", "buyer", func(b *bazaar, _ *stall) { b.units = 4 }},
	}
}

// trade is one market under one rule with one deviation, in credits per core-hour.
type trade struct {
	market, rule, deviance int
	idle, sold             bool
	price                  float64
	sellers, first, buyer  float64 // gains of all sellers, the first, the buyer
	most                   float64 // second-lowest minimum of all, plus one decrement
}

func (b bazaar) trades(n int) (list []trade) {
	for k, r := range rules() {
		for v, d := range deviances() {
			c := b
			c.stalls = slices.Clone(b.stalls)
			d.change(&c, &c.stalls[0])
			x := trade{market: n, rule: k, deviance: v, idle: b.idle(), most: c.most()}
			for _, l := range r.award(c) {
				units := float64(c.units)
				gain := (price(l.pay) - price(c.stalls[l.stall].least)*float64(l.units)) / units
				x.sold, x.price, x.sellers = true, x.price+price(l.pay)/units, x.sellers+gain
				if l.stall == 0 {
					x.first += gain
				}
			}
			if x.sold {
				x.buyer = price(b.worth) - x.price
			}
			list = append(list, x)
		}
	}
	return list
}

// most is what idle rivals make of a price: the second-lowest minimum plus one decrement of
// that seller.
func (b bazaar) most() float64 {
	order := slices.SortedFunc(slices.Values(b.stalls), func(x, y stall) int { return int(x.Min - y.Min) })
	return price(order[1].Min + order[1].Decrement(pricing.Load{Capacity: 1}))
}

// usualBazaars is how many markets price-rules draws.
const usualBazaars = 500

// priceRules compares the two price rules, posted prices and a Vickrey award.
func priceRules(ctx context.Context, l *Lab, r *Result) error {
	sets, err := gather(ctx, l, "price-rules", l.repeat(usualBazaars), func(i int) []trade {
		return newBazaar(rand.New(rand.NewPCG(l.seed(i), 19))).trades(i)
	})
	all := slices.Concat(sets...)
	kinds, ways := rules(), deviances()
	r.table(Table{Name: "runs", About: "Every award", Columns: []string{"market", "rule", "deviation", "idle", "sold", "price", "sellers_gain", "first_sellers_gain", "buyers_gain"},
		Rows: each(all, func(x trade) []string {
			return []string{fmt.Sprint(x.market + 1), kinds[x.rule].name, ways[x.deviance].name, fmt.Sprint(x.idle), fmt.Sprint(x.sold), num(x.price, 6), num(x.sellers, 6), num(x.first, 6), num(x.buyer, 6)}
		})})
	if err != nil {
		return err
	}
	rulesTell(r, sets)
	gainsTell(r, sets)
	r.note("%d random markets of 2 to 8 sellers with minima of 25 to 65 credits per core-hour, one request of %d cores each that is worth 30 to 100. Machines are idle in every second market. Auctions go on until nobody improves unless their rounds are given. Gains are per core-hour of a request, bought or not: of sellers above their true minima, of buyers below the worth.", len(sets), bazaarCores)
	return nil
}

func at(set []trade, rule, deviance int) trade { return set[rule*len(deviances())+deviance] }

// over is the mean of a figure over markets.
func over(sets [][]trade, f func(set []trade) (float64, bool)) float64 {
	var list []float64
	for _, set := range sets {
		if x, ok := f(set); ok {
			list = append(list, x)
		}
	}
	return mean(list)
}

// doubled is the deviation of a buyer that names a higher ceiling.
const doubled = 5

func rulesTell(r *Result, sets [][]trade) {
	t := Table{Name: "rules", About: "By rule", Shown: true, Columns: []string{"rule", "sold", "buyers pay", "with twice the ceiling", "sellers gain", "buyers gain"}}
	pay := make([]float64, len(rules()))
	rise := make([]float64, len(pay))
	honest, high := series{name: "ceiling: the worth", style: 0}, series{name: "ceiling: twice the worth", style: 1}
	var names []string
	for k, kind := range rules() {
		soldBoth := func(set []trade) bool {
			return !slices.ContainsFunc(set, func(x trade) bool { return (x.deviance == 0 || x.deviance == doubled) && !x.sold })
		}
		figure := func(deviance int, f func(trade) float64, all bool) float64 {
			return over(sets, func(set []trade) (float64, bool) { return f(at(set, k, deviance)), all || soldBoth(set) })
		}
		sold := 0
		for _, set := range sets {
			if at(set, k, 0).sold {
				sold++
			}
		}
		paid := func(x trade) float64 { return x.price }
		pay[k] = figure(0, paid, false)
		most := figure(doubled, paid, false)
		rise[k] = 100 * (most - pay[k]) / pay[k]
		t.Rows = append(t.Rows, []string{
			kind.name, fmt.Sprint(sold), num(pay[k], 2), num(most, 2),
			num(figure(0, func(x trade) float64 { return x.sellers }, true), 2), num(figure(0, func(x trade) float64 { return x.buyer }, true), 2),
		})
		names = append(names, kind.name)
		honest.y, high.y = append(honest.y, pay[k]), append(high.y, most)
	}
	r.table(t)
	p := chart("Mean price", "", "price (credits per core-hour)")
	bars(p, names, []series{honest, high})
	roof(p, .2)
	r.figure("price-rules", "Mean price in the markets in which every rule sells.", p)
	rulesShapes(r, sets, pay, rise)
}

func rulesShapes(r *Result, sets [][]trade, pay, rise []float64) {
	idle, within := 0, 0
	for _, x := range slices.Concat(sets...) {
		if x.rule == 0 && x.idle && x.sold && (x.deviance == 0 || x.deviance == doubled) {
			if idle++; x.price <= x.most {
				within++
			}
		}
	}
	r.shape("list: on idle machines nobody pays more than the second-lowest minimum plus a decrement", within == idle, fmt.Sprintf("%d of %d", within, idle), "all")
	r.shape("list: a doubled ceiling leaves the price", max(rise[0], -rise[0]) < 1, fmt.Sprintf("%+.2f %%", rise[0]), "within 1 %")
	r.shape("ramp, 3 rounds: a doubled ceiling raises the price", rise[2] > 1, fmt.Sprintf("%+.1f %%", rise[2]), "more than 1 %")
	gap := func(k int) float64 { return max(pay[k]-pay[4], pay[4]-pay[k]) }
	r.shape("list: nearer to Vickrey's price than ramp with 3 rounds and posted prices", gap(0) < min(gap(2), gap(3)), fmt.Sprintf("%.2f, against %.2f and %.2f", gap(0), gap(2), gap(3)), "nearest")
}

// gainsTell reports who gains by deviating.
func gainsTell(r *Result, sets [][]trade) {
	t := Table{Name: "deviations", About: "What deviating adds to the own gain (markets in which it gains, loses)", Shown: true, Columns: []string{"who", "deviation"}}
	for _, k := range rules() {
		t.Columns = append(t.Columns, k.name)
	}
	gained := 0
	for v, d := range deviances()[1:] {
		row := []string{d.who, d.name}
		for k := range rules() {
			better, worse := 0, 0
			extra := over(sets, func(set []trade) (float64, bool) {
				x, base := at(set, k, v+1), at(set, k, 0)
				more := x.first - base.first
				if d.who == "buyer" {
					more = x.buyer - base.buyer
				}
				switch {
				case more > 1e-9:
					better++
				case more < -1e-9:
					worse++
				}
				return more, true
			})
			if d.who == "seller" && k == len(rules())-1 {
				gained += better
			}
			row = append(row, fmt.Sprintf("%+.2f (%d, %d)", extra, better, worse))
		}
		t.Rows = append(t.Rows, row)
	}
	r.table(t)
	r.shape("vickrey: no seller gains by deviating", gained == 0, fmt.Sprintf("%d markets", gained), "none")
}

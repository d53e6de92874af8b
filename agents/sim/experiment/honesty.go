package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/message"
)

// variant is a market in which some parties deviate from the rules.
type variant struct {
	name, about string
	seller      func(s *seller, ring []seller)
	all         bool // all sellers deviate; otherwise every fourth
	rounds      int
	opening     int // percent of the price at which users open
}

// variants are the honest market, a baseline of posted prices, and one for each kind of dishonesty.
func variants() []variant {
	return []variant{
		{"honest", "everybody follows the rule", nil, false, workRounds, 100},
		{"posted", "every seller posts the middle of its band; one round", func(s *seller, _ []seller) { s.band.Min, s.band.Start = middle(s.band), middle(s.band) }, true, 1, 100},
		{"shade", "every fourth seller pretends that its minimum is the middle of its band", shade, false, workRounds, 100},
		{"snipe", "every fourth seller bids in the last round only", func(s *seller, _ []seller) {
			s.twist = func(r agents.Role, self protocol.AgentID) agents.Role { return sniper{r, self} }
		}, false, workRounds, 100},
		{"collude", "every fourth seller belongs to a ring that never bids below its highest minimum", collude, false, workRounds, 100},
		{"free-ride", "every fourth seller undercuts the current price by almost nothing", ride, false, workRounds, 100},
		{"overstate", "users open at one and a half times their price", nil, false, workRounds, 150},
	}
}

func middle(b pricing.Band) protocol.Credits { return (b.Start + b.Min) / 2 }

func shade(s *seller, _ []seller) { s.band.Min = middle(s.band) }

func ride(s *seller, _ []seller) { s.band.Rounds = pricing.MaxRounds }

func collude(s *seller, ring []seller) {
	for _, other := range ring {
		s.band.Min = max(s.band.Min, other.band.Min)
	}
	s.band.Start = max(s.band.Start, s.band.Min)
}

// sniper is a seller that claims that it cannot bid before the last round.
type sniper struct {
	agents.Role
	self protocol.AgentID
}

// Receive refuses calls before the last round.
func (s sniper) Receive(now time.Time, m protocol.Message) protocol.Output {
	call, ok := m.Body.(message.CallForProposals)
	if !ok || call.Round >= workRounds {
		return s.Role.Receive(now, m)
	}
	why := message.Refused(protocol.CodeUnavailable, "not now")
	why.Round = call.Round
	return protocol.Output{Send: []protocol.Message{m.Reply(s.self, protocol.Refuse, why)}}
}

func deviant(i int) bool { return i%4 == 0 }

// deal is one auction of a variant.
type deal struct {
	variant, start, job int
	settled             bool
	price               float64
	deviant             bool
	profit              float64 // above the seller's true minimum, in credits
	spent               float64
}

// honesty compares the variants over the jobs of table 3 at every market start.
func honesty(ctx context.Context, l *Lab, r *Result) error {
	kinds, starts := variants(), l.Settings.Starts
	l.issue(1, l.twenty())
	sets, err := gather(ctx, l, "honesty", len(kinds)*starts, func(i int) []deal { return l.deals(i/starts, i%starts) })
	deals := slices.Concat(sets...)
	rows := each(deals, func(d deal) []string {
		return []string{kinds[d.variant].name, fmt.Sprint(d.start + 1), table3()[d.job].name, fmt.Sprint(d.settled), num(d.price, 6), fmt.Sprint(d.deviant), num(d.profit, 2), num(d.spent, 2)}
	})
	r.table(Table{Name: "runs", About: "Every auction", Columns: []string{"variant", "start", "job", "settled", "price", "deviant_won", "profit", "spent"}, Rows: rows})
	if err != nil {
		return err
	}
	r.honestyTell(deals)
	return nil
}

func (l *Lab) deals(kind, start int) []deal {
	v := variants()[kind]
	sellers, truth := l.twenty(), map[string]seller{}
	var ring []seller
	for i, s := range sellers {
		truth[s.name] = s
		if deviant(i) {
			ring = append(ring, s)
		}
	}
	for i := range sellers {
		if v.seller != nil && (v.all || deviant(i)) {
			v.seller(&sellers[i], ring)
		}
	}
	s := l.stage(play{seed: l.seed(start), offset: time.Duration(start) * l.Settings.Gap, sellers: sellers, users: 1})
	s.watch.quiet = true
	var list []deal
	for n, j := range table3() {
		j.price = j.price * protocol.Credits(v.opening) / 100
		p := s.buy(0, j.name, early(v.rounds, l.Settings.RoundLimit), j)
		d := deal{variant: kind, start: start, job: n, settled: p.Settled}
		if p.Settled {
			u := p.Units[0]
			d.price, d.spent = price(u.Price), price(u.Cost)
			d.profit = d.spent - price(truth[u.Resource].band.Min)*float64(u.Cores)*wall.Hours()
			d.deviant = slices.ContainsFunc(ring, func(x seller) bool { return x.name == u.Resource })
		}
		list = append(list, d)
	}
	return list
}

// sum is a variant's result.
type sum struct {
	sold, won           int
	prices              []float64
	ours, others, spent float64
	byJob               map[int][]float64
	meanPrice, variance float64 // of prices; the mean over the jobs of one's variance
}

func sums(deals []deal, kind int) sum {
	s := sum{byJob: map[int][]float64{}}
	for _, d := range deals {
		if d.variant != kind || !d.settled {
			continue
		}
		s.sold++
		s.prices, s.spent = append(s.prices, d.price), s.spent+d.spent
		s.byJob[d.job] = append(s.byJob[d.job], d.price)
		if d.deviant {
			s.won, s.ours = s.won+1, s.ours+d.profit
		} else {
			s.others += d.profit
		}
	}
	var variances []float64
	for n := range table3() {
		if len(s.byJob[n]) > 1 {
			d := deviation(s.byJob[n])
			variances = append(variances, d*d)
		}
	}
	s.meanPrice, s.variance = mean(s.prices), mean(variances)
	return s
}

func (r *Result) honestyTell(deals []deal) {
	t := Table{Name: "variants", About: "By kind", Shown: true, Columns: []string{
		"variant", "what", "sold", "mean price", "price variance, same job", "won by the fourth", "their profit", "against honest", "others' profit", "against honest",
	}}
	honest := sums(deals, 0)
	var names []string
	prices, gains := series{name: "mean price (credits per core-hour)", style: 0}, series{name: "deviating sellers (every fourth)", style: 1}
	others := series{name: "the others", style: 2}
	for i, v := range variants() {
		s := sums(deals, i)
		t.Rows = append(t.Rows, []string{
			v.name, v.about, fmt.Sprint(s.sold), num(s.meanPrice, 2), num(s.variance, 3), fmt.Sprint(s.won),
			num(s.ours, 0), change(s.ours, honest.ours), num(s.others, 0), change(s.others, honest.others),
		})
		names = append(names, v.name)
		prices.y, gains.y, others.y = append(prices.y, s.meanPrice), append(gains.y, s.ours/1e6), append(others.y, s.others/1e6)
	}
	r.table(t)
	p := chart("Mean price", "", "mean price (credits per core-hour)")
	bars(p, names, []series{prices})
	r.figure("honesty-price", "Mean winning price over the jobs of table 3, by kind of dishonesty, beside posted prices.", p)
	q := chart("Profit of sellers", "", "profit above true minimum (million credits)")
	bars(q, names, []series{gains, others})
	roof(q, .2)
	r.figure("honesty-profit", "Earnings of sellers above their true minimum price. Every fourth of the twenty deviates, except in the markets honest, posted and overstate.", q)
	r.note("Profit is the payment minus the seller's true minimum price for the core-hours sold. The price variance is that of a job's prices over the market starts, averaged over the jobs.")
}

func change(x, base float64) string {
	if base == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(x-base)/base)
}

package books

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// Query is the scope of a report.
type Query struct {
	From time.Time     // where the first period begins; zero: with the first entry, at a multiple of Step
	Step time.Duration // of a period, more than zero
	Top  int           // accounts of each currency, 0..MaxTop
}

// Validate names the field that is wrong.
func (q Query) Validate() error {
	switch {
	case q.Step < time.Second:
		return fmt.Errorf("periods of %s: want 1s or longer", q.Step)
	case q.Top < 0 || q.Top > MaxTop:
		return fmt.Errorf("%d accounts: want 0..%d", q.Top, MaxTop)
	}
	return nil
}

// Sums are the sums of a time in one currency. A sum that does not fit stays at the maximum.
type Sums struct {
	Contracts uint64           `json:"contracts"` // bundles that were paid or held
	Open      uint64           `json:"open"`      // contracts with open holds, whose cost is not decided yet
	Voided    uint64           `json:"voided"`    // bundles that were voided
	Turnover  protocol.Credits `json:"turnover"`  // paid for work
	Refunded  protocol.Credits `json:"refunded"`  // paid back of the turnover
	Issued    protocol.Credits `json:"issued"`    // credits and incomes, less what decayed
	Moved     protocol.Credits `json:"moved"`     // by the operator between accounts
}

// Period is one step.
type Period struct {
	Start time.Time `json:"start"`
	Sums
	Price protocol.Credits `json:"price"` // mean price of its contracts, see Prices
	// PerCoreHour is what its contracts with a price cost per core-hour of their slots.
	PerCoreHour protocol.Credits `json:"price_core_hour"`
}

// Prices are the total costs of contracts: the payment at the settlement or, for one that
// is paid after the fact, all payments once its units have ended. An open contract has
// no price, and neither has one without any payment.
type Prices struct {
	Least  protocol.Credits `json:"least"`
	Median protocol.Credits `json:"median"`
	Mean   protocol.Credits `json:"mean"`
	Most   protocol.Credits `json:"most"`
}

// Trader is an account's turnover from paid work, less refunds.
type Trader struct {
	Account protocol.AgentID `json:"account"`
	Name    string           `json:"name"` // for the caller to fill in
	Earned  protocol.Credits `json:"earned"`
	Spent   protocol.Credits `json:"spent"`
}

// Currency is the report of one currency.
type Currency struct {
	Currency string `json:"currency"`
	Sums
	Prices Prices `json:"prices"`
	// PerCoreHour is as of a Period.
	PerCoreHour protocol.Credits `json:"price_core_hour"`
	Periods     []Period         `json:"periods"` // those with any sums, in order
	Top         []Trader         `json:"top"`     // by the sum of earnings and spending
}

// Report gathers entries.
type Report struct {
	q          Query
	start      time.Time
	currencies map[string]*gathered
}

type gathered struct {
	all     period
	periods map[int64]*period
	open    map[protocol.ContractID]*openContract // at most as many as the ledger has holds
	traders map[protocol.AgentID]*Trader
	prices  sample
}

type period struct {
	Sums
	price  protocol.Credits // sum of the contracts'
	priced uint64           // so many
	cores  int64            // core-seconds of their slots
}

// openContract is a contract with open holds.
type openContract struct {
	made  *period
	left  int // units
	paid  protocol.Credits
	cores int64 // core-seconds
}

// NewReport begins a report; the query must be valid.
func NewReport(q Query) *Report {
	return &Report{q: q, start: q.From, currencies: map[string]*gathered{}}
}

// Add takes the next entry, with the core-seconds of the slots that it sold. It fails when
// there would be more than MaxPeriods.
func (r *Report) Add(e ledger.Entry, cores int64) error {
	if r.start.IsZero() {
		r.start = e.Time.Truncate(r.q.Step)
	}
	currency := e.Currency
	if len(e.Legs) > 0 {
		currency = e.Legs[0].Currency
	}
	if currency == "" || e.Kind == ledger.KindExchange {
		return nil
	}
	g := r.currencies[currency]
	if g == nil {
		g = &gathered{periods: map[int64]*period{}, traders: map[protocol.AgentID]*Trader{}, open: map[protocol.ContractID]*openContract{}}
	}
	at := int64(e.Time.Sub(r.start) / r.q.Step)
	p := g.periods[at]
	if p == nil {
		p = &period{}
	}
	if !g.take(&e, cores, p) {
		return nil
	}
	r.currencies[currency], g.periods[at] = g, p
	if len(g.periods) > MaxPeriods {
		return fmt.Errorf("more than %d periods of %s: want longer ones, or a shorter time", MaxPeriods, r.q.Step)
	}
	return nil
}

// take adds an entry to the sums, and reports whether it is about money or contracts.
func (g *gathered) take(e *ledger.Entry, cores int64, p *period) bool {
	switch e.Kind {
	case ledger.KindSettle, ledger.KindDraw:
		total := -e.Legs[0].Amount // the user's comes first
		g.both(p, func(s *Sums) { s.Contracts++ })
		g.price(p, total, cores)
		g.paid(e, p, total)
	case ledger.KindReserve:
		g.both(p, func(s *Sums) { s.Contracts++; s.Open++ })
		g.open[e.Contract] = &openContract{made: p, left: len(e.Units), cores: cores}
	case ledger.KindComplete:
		g.paid(e, p, outOfHolds(e))
		g.ended(e)
	case ledger.KindPost:
		g.paid(e, p, outOfHolds(e))
	case ledger.KindRefund:
		g.both(p, func(s *Sums) { s.Refunded = add(s.Refunded, e.Refund().Amount) })
		g.trade(e, -1)
	case ledger.KindVoid:
		g.both(p, func(s *Sums) { s.Voided++ })
	case ledger.KindCredit, ledger.KindIncome:
		g.both(p, func(s *Sums) { s.Issued = add(s.Issued, -e.Legs[0].Amount) }) // the issuer's comes first
	case ledger.KindTransfer:
		g.both(p, func(s *Sums) { s.Moved = add(s.Moved, -e.Legs[0].Amount) })
	default:
		return false
	}
	return true
}

func (g *gathered) both(p *period, f func(*Sums)) {
	f(&p.Sums)
	f(&g.all.Sums)
}

// price notes the cost of a contract that was settled in a period.
func (g *gathered) price(p *period, price protocol.Credits, cores int64) {
	p.price, g.all.price = add(p.price, price), add(g.all.price, price)
	p.cores, g.all.cores = p.cores+cores, g.all.cores+cores
	p.priced++
	g.all.priced++
	g.prices.add(price)
}

// ended notes the end of a unit. A contract from before the first entry has no price,
// because its payments are not all known.
func (g *gathered) ended(e *ledger.Entry) {
	c := g.open[e.Contract]
	if c == nil {
		return
	}
	c.left--
	c.paid = add(c.paid, outOfHolds(e))
	if c.left > 0 {
		return
	}
	delete(g.open, e.Contract)
	g.both(c.made, func(s *Sums) { s.Open-- })
	if c.paid > 0 {
		g.price(c.made, c.paid, c.cores)
	}
}

func (g *gathered) paid(e *ledger.Entry, p *period, amount protocol.Credits) {
	g.both(p, func(s *Sums) { s.Turnover = add(s.Turnover, amount) })
	g.trade(e, 1)
}

// trade adds the legs to the earnings and spendings of their accounts; with sign -1 it
// subtracts a refund, whose legs run the other way.
func (g *gathered) trade(e *ledger.Entry, sign protocol.Credits) {
	for _, leg := range e.Legs {
		amount := sign * leg.Amount
		if amount == 0 {
			continue
		}
		t := g.traders[leg.Account]
		if t == nil {
			t = &Trader{Account: leg.Account}
			g.traders[leg.Account] = t
		}
		if amount > 0 {
			t.Earned = add(t.Earned, sign*amount)
		} else {
			t.Spent = add(t.Spent, -sign*amount)
		}
	}
}

// outOfHolds is the amount that an entry paid out of holds.
func outOfHolds(e *ledger.Entry) (sum protocol.Credits) {
	for _, leg := range e.Legs {
		if leg.Held < 0 {
			sum = add(sum, -leg.Amount)
		}
	}
	return sum
}

// add stays at the maximum if the sum does not fit.
func add(x, y protocol.Credits) protocol.Credits {
	sum, err := x.Add(y)
	switch {
	case err == nil:
		return sum
	case x < 0:
		return -protocol.MaxCredits
	}
	return protocol.MaxCredits
}

// Currencies are the report, in order of currency.
func (r *Report) Currencies() []Currency {
	list := []Currency{}
	for _, name := range slices.Sorted(maps.Keys(r.currencies)) {
		g := r.currencies[name]
		c := Currency{Currency: name, Sums: g.all.Sums, Prices: g.prices.prices(g.all.mean()), PerCoreHour: g.all.perCoreHour(), Periods: []Period{}}
		for _, at := range slices.Sorted(maps.Keys(g.periods)) {
			p := g.periods[at]
			c.Periods = append(c.Periods, Period{r.start.Add(time.Duration(at) * r.q.Step).UTC(), p.Sums, p.mean(), p.perCoreHour()})
		}
		c.Top = g.top(r.q.Top)
		list = append(list, c)
	}
	return list
}

func (p *period) mean() protocol.Credits {
	if p.priced == 0 {
		return 0
	}
	return p.price / protocol.Credits(p.priced)
}

// perCoreHour is zero if the slots are not known, and stays at the maximum.
func (p *period) perCoreHour() protocol.Credits {
	if p.cores <= 0 {
		return 0
	}
	return protocol.Credits(min(math.Round(float64(p.price)/float64(p.cores)*time.Hour.Seconds()), float64(protocol.MaxCredits)))
}

// top are the greatest traders; equal ones are in order of ID.
func (g *gathered) top(n int) []Trader {
	all := make([]Trader, 0, len(g.traders))
	for _, t := range g.traders {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(x, y Trader) int {
		return cmp.Or(cmp.Compare(add(y.Earned, y.Spent), add(x.Earned, x.Spent)), cmp.Compare(x.Account, y.Account))
	})
	return all[:min(n, len(all))]
}

// sample keeps prices; of many, every second, fourth … one.
type sample struct {
	list        []protocol.Credits
	least, most protocol.Credits
	seen        uint64
	every       uint64
}

func (s *sample) add(p protocol.Credits) {
	if s.seen == 0 {
		s.least, s.most, s.every = p, p, 1
	}
	s.least, s.most = min(s.least, p), max(s.most, p)
	if s.seen%s.every == 0 {
		s.list = append(s.list, p)
	}
	s.seen++
	if len(s.list) == maxPrices {
		for i := range maxPrices / 2 {
			s.list[i] = s.list[2*i]
		}
		s.list, s.every = s.list[:maxPrices/2], 2*s.every
	}
}

func (s *sample) prices(mean protocol.Credits) Prices {
	if s.seen == 0 {
		return Prices{}
	}
	sorted := slices.Sorted(slices.Values(s.list))
	return Prices{s.least, sorted[(len(sorted)-1)/2], mean, s.most}
}

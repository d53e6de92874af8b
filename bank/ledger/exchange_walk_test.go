package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// exchangeWorld is a ledger and the model of its exchange, told the same.
type exchangeWorld struct {
	*bank
	m    *exchangeModel
	all  []protocol.AgentID // users, the last without an account, and the other side
	came map[string]int     // how often the walk came to what
}

func newExchangeWorld(t *rapid.T, came map[string]int) *exchangeWorld {
	w := &exchangeWorld{bank: &bank{store: memory{}, now: start()}, m: newExchangeModel(), came: came}
	w.all = []protocol.AgentID{agent("ann"), agent("bob"), agent("eve"), ledger.House}
	w.restart(t)
	for _, id := range w.all[:2] {
		_, err := saved[ledger.Entry](w.bank)(w.Open(w.now, id, id.Name()))
		same(t, "open", code(err), "")
		w.m.open[id] = true
		w.credit(t, id, "cr", 60)
	}
	for _, p := range [][2]string{{"cr", "eur"}, {"eur", "cr"}} {
		_, err := saved[ledger.Entry](w.bank)(w.Exchange.SetRate(w.now, p[0], p[1], protocol.Credit/2, ""))
		same(t, "rate", code(err), "")
		w.m.rates[p], w.m.open[ledger.House] = protocol.Credit/2, true
	}
	return w
}

func (w *exchangeWorld) restart(t *rapid.T) {
	if err := w.reload(); err != nil {
		t.Fatal(err)
	}
	w.m.graceEnds = w.now.Add(ledger.DefaultGrace)
}

func (w *exchangeWorld) who(t *rapid.T) protocol.AgentID {
	return rapid.SampledFrom(w.all).Draw(t, "who")
}

func (w *exchangeWorld) user(t *rapid.T) protocol.AgentID {
	return rapid.SampledFrom([]protocol.AgentID{w.all[0], w.all[0], w.all[0], w.all[1], w.all[1], w.all[2]}).Draw(t, "user")
}

func currency(t *rapid.T) string { return rapid.SampledFrom([]string{"cr", "eur"}).Draw(t, "currency") }

func exchangeAmount(t *rapid.T) protocol.Credits {
	small := rapid.Int64Range(-1, 30)
	huge := rapid.Int64Range(int64(protocol.MaxCredits)-40, int64(protocol.MaxCredits))
	return protocol.Credits(rapid.OneOf(small, small, small, small, huge).Draw(t, "amount"))
}

func (w *exchangeWorld) credit(t *rapid.T, to protocol.AgentID, currency string, amount protocol.Credits) {
	_, err := saved[ledger.Entry](w.bank)(w.Credit(w.now, to, currency, amount, ""))
	same(t, "credit", code(err), w.m.credit(to, currency, amount))
}

// compare holds all balances against each other, and sums each currency.
func (w *exchangeWorld) compare(t *rapid.T) {
	for _, id := range append([]protocol.AgentID{ledger.Issuer}, w.all...) {
		a, _ := w.Account(id)
		lines := map[string]ledger.Balance{}
		for _, n := range a.Lines {
			lines[n.Currency] = n
		}
		for _, c := range []string{"cr", "eur"} {
			same(t, fmt.Sprintf("%s of %s", c, id), bigOf(lines[c].Balance).String(), w.m.purse(id, c).balance.String())
			same(t, fmt.Sprintf("held %s of %s", c, id), bigOf(lines[c].Held).String(), w.m.held(id, c).String())
		}
	}
	for currency, sum := range w.Sum() {
		same(t, "sum of "+currency, sum, 0)
	}
	same(t, "next deadline", w.NextDeadline(), w.m.nextDeadline())
}

// step does one random thing to both.
func (w *exchangeWorld) step(t *rapid.T) {
	switch rapid.IntRange(0, 15).Draw(t, "op") {
	case 0:
		w.stepRate(t)
	case 1:
		w.stepOperator(t)
	case 2, 3:
		w.credit(t, w.who(t), currency(t), exchangeAmount(t))
	case 4:
		k, amount, until := purseKey{w.user(t), currency(t)}, exchangeAmount(t), w.now.Add(time.Duration(rapid.IntRange(-5, 200).Draw(t, "ahead"))*time.Second)
		_, err := saved[ledger.Hold](w.bank)(w.Hold(w.now, k.of, k.currency, amount, until, ""))
		same(t, "hold", code(err), w.m.hold(w.now, k, amount, until))
	case 5, 6, 7, 8:
		w.stepQuote(t, w.user(t), w.id(t))
		if rapid.IntRange(0, 100).Draw(t, "greedy") == 0 {
			for i := range ledger.MaxUserQuotes + 1 {
				w.stepQuote(t, w.all[0], fmt.Sprint("n", i))
			}
		}
	case 9, 10, 11, 12, 13:
		w.stepExchange(t)
	default:
		w.stepTime(t)
	}
}

func (w *exchangeWorld) stepRate(t *rapid.T) {
	from, to := currency(t), rapid.SampledFrom([]string{"cr", "eur", "eur", "cr", "old"}).Draw(t, "to")
	rate := rapid.SampledFrom([]protocol.Credits{-1, 0, 1, 250_000, 333_333, protocol.Credit, 7 * protocol.Credit, protocol.MaxCredits}).Draw(t, "rate")
	_, err := saved[ledger.Entry](w.bank)(w.Exchange.SetRate(w.now, from, to, rate, ""))
	want := protocol.Code("")
	switch {
	case from != to && to == "old":
		want = protocol.CodeNoBank
	case rate < 0, from == to:
		want = protocol.CodeMalformed
	default:
		w.m.rates[[2]string{from, to}], w.m.open[ledger.House] = rate, true
	}
	same(t, "rate", code(err), want)
}

// stepOperator freezes or frees an account, or lets it go below zero.
func (w *exchangeWorld) stepOperator(t *rapid.T) {
	id := w.who(t)
	if i := slices.IndexFunc(w.all, func(id protocol.AgentID) bool { return w.m.frozen[id] }); i >= 0 {
		id = w.all[i] // not for long
	}
	if !w.m.open[id] {
		return
	}
	if w.m.frozen[id] || rapid.IntRange(0, 2).Draw(t, "freeze") == 0 {
		w.m.frozen[id] = !w.m.frozen[id]
		standing := ledger.StandingOpen
		if w.m.frozen[id] {
			standing = ledger.StandingFrozen
		}
		_, err := saved[ledger.Entry](w.bank)(w.SetStanding(w.now, id, standing, ""))
		same(t, "standing", code(err), "")
		return
	}
	c, limit := currency(t), max(0, exchangeAmount(t))
	_, err := saved[ledger.Entry](w.bank)(w.SetOverdraft(w.now, id, c, limit))
	same(t, "overdraft", code(err), "")
	w.m.purse(id, c).overdraft = bigOf(limit)
}

// id is one of few, so that they are asked for again, or a new one: they are bounded.
func (w *exchangeWorld) id(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "new") == 0 {
		return rapid.StringMatching(`n[0-9]?[0-9]?`).Draw(t, "id")
	}
	return rapid.SampledFrom([]string{"q0", "q1", "q2", ""}).Draw(t, "id")
}

func (w *exchangeWorld) stepQuote(t *rapid.T, user protocol.AgentID, id string) {
	from, to, gives := "cr", "eur", exchangeAmount(t)
	if rapid.Bool().Draw(t, "other way") {
		from, to = to, from
	}
	if q := w.m.find(user, id); q != nil && rapid.Bool().Draw(t, "the same") {
		from, to, gives = q.From, q.To, q.Gives
	}
	before := w.m.find(user, id)
	known := before != nil && (before.done || w.now.Before(before.Until))
	want, refused := w.m.quote(w.now, user, id, from, to, gives)
	got, records, err := w.Exchange.Quote(w.now, user, id, from, to, gives)
	w.store.append(records)
	same(t, "quote", code(err), refused)
	same(t, "what is promised", w.withEntry(got), w.withEntry(want))
	if (refused != "" || known) && len(records) > 0 {
		t.Fatalf("a quote that is refused, or there, saved %d records", len(records))
	}
	w.came["quote "+string(refused)]++
}

// withEntry leaves the number of the entry out, which the model does not count.
func (w *exchangeWorld) withEntry(q ledger.Quote) ledger.Quote {
	q.Entry = 0
	return q
}

func (w *exchangeWorld) stepExchange(t *rapid.T) {
	user, id := w.user(t), w.id(t)
	if n := len(w.m.quotes); n > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		q := w.m.quotes[rapid.IntRange(0, n-1).Draw(t, "quote")]
		user, id = q.User, q.ID
	}
	entries, least := w.LastEntry(), protocol.Credits(rapid.IntRange(-10, 3).Draw(t, "least"))
	again, refused := w.m.exchange(w.now, user, id, least)
	q, records, err := w.Exchange.CarryOut(w.now, user, id, least)
	w.store.append(records)
	same(t, "exchange", code(err), refused)
	switch changed := len(records) > 0 || w.LastEntry() != entries; {
	case refused == protocol.CodeUnknown && w.m.open[user] || refused == protocol.CodeExpired:
		same(t, "records that a deposed machine cannot save", len(records), 1)
		same(t, "entries of what is refused", w.LastEntry(), entries)
	case refused != "" || again:
		same(t, "changed by what is refused, or was done before", changed, false)
	default:
		same(t, "entries of both legs", w.LastEntry(), entries+1)
		w.bothLegs(t, q)
	}
	if again {
		w.came["again"]++
	}
	w.came["exchange "+string(refused)]++
}

// bothLegs reads the entry back from the store.
func (w *exchangeWorld) bothLegs(t *rapid.T, q ledger.Quote) {
	e, err := w.store.entry(q.Entry)
	if err != nil {
		t.Fatal(err)
	}
	moved := map[purseKey]protocol.Credits{}
	for _, l := range e.Legs {
		moved[purseKey{l.Account, l.Currency}] += l.Amount
	}
	same(t, "legs", len(moved), 4)
	same(t, "given", moved[purseKey{q.User, q.From}], -q.Gives)
	same(t, "taken", moved[purseKey{ledger.House, q.From}], q.Gives)
	same(t, "got", moved[purseKey{q.User, q.To}], q.Gets)
	same(t, "paid", moved[purseKey{ledger.House, q.To}], -q.Gets)
}

// stepTime lets time pass, sometimes backwards, expires, or restarts the bank.
func (w *exchangeWorld) stepTime(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "time") {
	case 0:
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Hour, time.Hour, protocol.OrderMemory}).Draw(t, "long"))
	case 1:
		w.now = w.now.Add(-time.Duration(rapid.IntRange(1, 90).Draw(t, "back")) * time.Second)
	case 2, 3:
		w.restart(t)
	default:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "on")) * time.Second)
	}
	if rapid.Bool().Draw(t, "expire") { // the ledger judges also what nobody has ended yet
		w.m.expire(w.now)
		w.expire()
	}
}

// TestExchanges does 30,000 random things to a ledger that exchanges currencies, and
// to its model; with -rapid.checks=5000, 1.5 million.
func TestExchanges(t *testing.T) {
	came := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newExchangeWorld(t, came)
		for range 300 {
			w.step(t)
			w.compare(t)
		}
		sound(t, w.bank)
	})
	t.Logf("it came to %v", came)
	if testing.Short() {
		return // too few to come to everything
	}
	for _, what := range []string{
		"quote ", "quote account", "quote frozen", "quote malformed", "quote no-bank", "quote limit", "quote overflow", "quote mismatch",
		"exchange ", "exchange price", "exchange unknown", "exchange expired", "exchange frozen", "exchange funds", "exchange overflow", "again",
	} {
		if came[what] == 0 {
			t.Errorf("the walk never came to %q", what)
		}
	}
}

package ledger_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// world is a ledger and its model, told the same.
type world struct {
	*bank
	m      *model
	agents []protocol.AgentID
	holds  uint64 // numbers given so far
	grace  time.Duration
}

func newWorld(t *rapid.T) *world {
	w := &world{bank: &bank{store: memory{}, now: start()}, m: newModel(), grace: ledger.DefaultGrace}
	w.restart(t)
	for _, name := range []string{"ann", "bob", "eve", "joe", "zoe"} {
		id := agent(name)
		w.agents = append(w.agents, id)
		w.m.balance[id], w.m.overdraft[id] = new(big.Int), new(big.Int)
	}
	for _, id := range w.agents[:4] {
		w.openAccount(t, id)
		_, err := saved[ledger.Entry](w.bank)(w.Credit(w.now, id, "cr", 60, "first"))
		same(t, "credit", code(err), w.m.credit(id, 60))
	}
	return w
}

func (w *world) restart(t *rapid.T) {
	if err := w.reload(); err != nil {
		t.Fatal(err)
	}
	w.m.graceEnds = w.now.Add(w.grace)
}

func (w *world) openAccount(t *rapid.T, id protocol.AgentID) {
	_, err := saved[ledger.Entry](w.bank)(w.Open(w.now, id, id.Name()))
	want := protocol.Code("")
	if w.m.open[id] {
		want = protocol.CodeMismatch
	}
	w.m.open[id] = true
	same(t, "open", code(err), want)
}

func same[T comparable](t *rapid.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// compare holds everything that both know against each other.
func (w *world) compare(t *rapid.T) {
	for _, id := range w.agents {
		a, ok := w.Account(id)
		same(t, "account of "+id.Name(), ok, w.m.open[id])
		if !ok {
			continue
		}
		n := a.Lines[0]
		same(t, "balance of "+id.Name(), bigOf(n.Balance).String(), w.m.balance[id].String())
		same(t, "held of "+id.Name(), bigOf(n.Held).String(), w.m.held(id).String())
		if have := w.m.available(id); !tooBig(have) {
			same(t, "available of "+id.Name(), bigOf(n.Available).String(), have.String())
		}
	}
	for currency, sum := range w.Sum() {
		same(t, "sum of "+currency, sum, 0)
	}
	same(t, "next deadline", w.NextDeadline(), w.m.nextDeadline())
}

func (w *world) compareReceipt(t *rapid.T, b *modelBundle, r protocol.Receipt) {
	same(t, "outcome", r.Outcome, b.outcome)
	same(t, "reason", r.Reason, b.reason)
	same(t, "contract", r.Contract, b.id)
	same(t, "refunds", len(r.Refunds), len(b.refunds))
	for _, f := range r.Refunds {
		same(t, "refund", f.Amount, b.refunds[f.Unit])
	}
	if r.Outcome == protocol.OutcomeSettled {
		same(t, "total", r.Total, b.Total)
	}
	if b.entry != 0 {
		same(t, "entry", r.Entry, b.entry)
	}
	b.entry = r.Entry
}

func (w *world) amount(t *rapid.T) protocol.Credits {
	small := rapid.Int64Range(-1, 30)
	huge := rapid.Int64Range(int64(protocol.MaxCredits)-40, int64(protocol.MaxCredits))
	return protocol.Credits(rapid.OneOf(small, small, small, huge).Draw(t, "amount"))
}

func (w *world) who(t *rapid.T) protocol.AgentID { return rapid.SampledFrom(w.agents).Draw(t, "who") }

func (w *world) ahead(t *rapid.T) time.Time {
	return w.now.Add(time.Duration(rapid.Int64Range(-5, 70).Draw(t, "ahead")) * time.Minute)
}

// bundle is one of the latest bundles, or a new one.
func (w *world) bundle(t *rapid.T) *modelBundle {
	n := len(w.m.bundles)
	if n > 0 && rapid.IntRange(0, 3).Draw(t, "old") > 0 {
		return w.m.bundles[rapid.IntRange(max(0, n-8), n-1).Draw(t, "bundle")]
	}
	if n > 0 && rapid.IntRange(0, 5).Draw(t, "very old") == 0 {
		return w.m.bundles[rapid.IntRange(0, n-1).Draw(t, "bundle")]
	}
	var pays []ledger.Payment
	for range rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "units") {
		pays = append(pays, ledger.Payment{To: w.who(t), Amount: protocol.Credits(rapid.Int64Range(0, 8).Draw(t, "cost"))})
	}
	c := newContract(fmt.Sprint("b", n), w.who(t), w.ahead(t), pays...)
	b := &modelBundle{contract: c, outcome: protocol.OutcomeUnknown, refunds: map[int]protocol.Credits{}}
	w.m.bundles = append(w.m.bundles, b)
	return b
}

// seller is mostly one of a bundle's.
func (w *world) seller(t *rapid.T, b *modelBundle) protocol.AgentID {
	if rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
		return w.who(t)
	}
	return rapid.SampledFrom(b.Units).Draw(t, "unit").Seller
}

// step does one random thing to both.
func (w *world) step(t *rapid.T) {
	switch rapid.IntRange(0, 15).Draw(t, "op") {
	case 0:
		w.stepAccount(t)
	case 1, 2:
		to, amount := w.who(t), w.amount(t)
		_, err := saved[ledger.Entry](w.bank)(w.Credit(w.now, to, "cr", amount, "pay"))
		same(t, "credit", code(err), w.m.credit(to, amount))
	case 3, 4:
		w.stepHold(t)
	case 5, 6:
		w.stepEnd(t)
	case 7, 8, 9, 10:
		b := w.bundle(t)
		seller := w.seller(t, b)
		r, err := w.copy(b.contract, seller)
		same(t, "copy", code(err), w.m.copy(w.now, b, seller))
		w.checkReceipt(t, b, r, err)
	case 11:
		b, by := w.bundle(t), w.who(t)
		r, err := w.void(b.contract, by)
		same(t, "void", code(err), w.m.void(w.now, b, by))
		w.checkReceipt(t, b, r, err)
	case 12:
		w.stepRefund(t)
	default:
		w.stepTime(t)
	}
}

func (w *world) checkReceipt(t *rapid.T, b *modelBundle, r protocol.Receipt, err error) {
	if err == nil {
		w.compareReceipt(t, b, r)
	}
}

func (w *world) stepAccount(t *rapid.T) {
	id := w.who(t)
	if rapid.Bool().Draw(t, "open") {
		w.openAccount(t, id)
		return
	}
	limit := max(0, w.amount(t))
	_, err := saved[ledger.Entry](w.bank)(w.SetOverdraft(w.now, id, "cr", limit))
	want := protocol.CodeAccount
	if w.m.open[id] {
		want, w.m.overdraft[id] = "", bigOf(limit)
	}
	same(t, "overdraft", code(err), want)
}

func (w *world) stepHold(t *rapid.T) {
	from, amount, until := w.who(t), w.amount(t), w.ahead(t)
	h, err := saved[ledger.Hold](w.bank)(w.Hold(w.now, from, "cr", amount, until, "ref"))
	same(t, "hold", code(err), w.m.hold(w.now, w.holds+1, from, amount, until))
	if err == nil {
		w.holds++
		same(t, "hold number", h.Number, w.holds)
	}
}

func (w *world) stepEnd(t *rapid.T) {
	number := uint64(rapid.IntRange(max(0, int(w.holds)-4), int(w.holds)+1).Draw(t, "hold"))
	if rapid.IntRange(0, 2).Draw(t, "void") == 0 {
		_, err := saved[ledger.Entry](w.bank)(w.VoidHold(w.now, number, ""))
		same(t, "void hold", code(err), w.m.end(w.now, number, "", 0))
		return
	}
	to, amount := w.who(t), w.amount(t)
	_, err := saved[ledger.Entry](w.bank)(w.PostHold(w.now, number, []ledger.Payment{{To: to, Amount: amount}}, ""))
	same(t, "post hold", code(err), w.m.end(w.now, number, to, amount))
}

func (w *world) stepRefund(t *rapid.T) {
	b := w.bundle(t)
	unit := rapid.IntRange(0, len(b.Units)-1).Draw(t, "unit")
	by, amount := b.Units[unit].Seller, protocol.Credits(rapid.Int64Range(-1, 9).Draw(t, "amount"))
	if rapid.IntRange(0, 7).Draw(t, "other") == 0 {
		by = w.who(t)
	}
	r, err := w.refund(b.contract, unit, amount, by)
	same(t, "refund", code(err), w.m.refund(w.now, b, unit, amount, by))
	w.checkReceipt(t, b, r, err)
}

// stepTime lets time pass, sometimes a day and sometimes backwards, expires, or
// restarts the bank.
func (w *world) stepTime(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "time") {
	case 0:
		w.now = w.now.Add(25 * time.Hour)
	case 1:
		w.now = w.now.Add(-time.Duration(rapid.IntRange(1, 600).Draw(t, "back")) * time.Second)
	case 2, 3:
		w.restart(t)
	default:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "on")) * time.Second)
	}
	w.m.expire(w.now)
	w.expire()
}

// TestModel does 30,000 random things to a ledger and to its model.
func TestModel(t *testing.T) {
	asked, settled, refunds := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 300 {
			w.step(t)
			w.compare(t)
		}
		for _, b := range w.m.bundles {
			r, err := w.asking(b.id, func() (protocol.Receipt, error) { return w.Outcome(b.id) })
			same(t, "outcome", code(err), "")
			w.compareReceipt(t, b, r)
			if refunds += len(b.refunds); b.outcome == protocol.OutcomeSettled {
				settled++
			}
		}
		asked += w.asked
		sound(t, w.bank)
	})
	if asked == 0 || settled == 0 || refunds == 0 {
		t.Fatalf("the walk never came to an old outcome (%d), a settlement (%d) or a refund (%d)", asked, settled, refunds)
	}
	t.Logf("asked the store %d times, settled %d, refunded %d", asked, settled, refunds)
}

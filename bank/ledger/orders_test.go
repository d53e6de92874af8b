package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// given is an order of the operator under a key.
type given struct {
	key      string
	from, to protocol.AgentID // from none: a credit
	amount   protocol.Credits
}

func (o given) words() string { return fmt.Sprint(o.from, " ", o.to, " ", o.amount) }

// give orders without saving, as a bank does that dies before its disk has the records.
func (b *bank) give(o given) (ledger.Entry, bool, []protocol.Record, error) {
	return b.Orders.Once(b.now, o.key, o.words(), func() (ledger.Entry, []protocol.Record, error) {
		if o.from == "" {
			return b.Credit(b.now, o.to, "cr", o.amount, "")
		}
		return b.Transfer(b.now, o.from, o.to, "cr", o.amount, ledger.Disputed{}, "")
	})
}

// remembered is an order as the oracle has it.
type remembered struct {
	words string
	entry uint64
	at    time.Time
}

// ordersWorld is a ledger and an oracle: what each key ordered last, and the balances
// that follow when each order counts once.
type ordersWorld struct {
	*bank
	keys    map[string]remembered
	balance map[protocol.AgentID]protocol.Credits
	came    map[string]int
}

// want is the answer of the oracle.
func (w *ordersWorld) want(o given) (again bool, code protocol.Code) {
	have, from := w.balance[o.from], o.from
	switch old, known := w.keys[o.key]; {
	case known && old.words != o.words():
		return false, protocol.CodeMismatch
	case known:
		return true, ""
	case o.key == "" || o.amount <= 0 || from == o.to:
		return false, protocol.CodeMalformed
	case from != "" && have < o.amount:
		return false, protocol.CodeFunds
	}
	return false, ""
}

func (w *ordersWorld) order(t *rapid.T) {
	names := []protocol.AgentID{agent("ann"), agent("bob"), ""}
	o := given{
		key:  rapid.SampledFrom([]string{"a", "b", "c", "d", "e", ""}).Draw(t, "key"),
		from: rapid.SampledFrom(names).Draw(t, "from"), to: rapid.SampledFrom(names[:2]).Draw(t, "to"),
		amount: protocol.Credits(rapid.IntRange(0, 3).Draw(t, "amount")),
	}
	again, refused := w.want(o)
	before, entries := w.keys[o.key], w.LastEntry()
	e, got, records, err := w.give(o)
	same(t, "code", code(err), refused)
	same(t, "again", got, again)
	w.came[fmt.Sprint(refused, " ", again)]++
	switch {
	case refused != "":
		same(t, "records of a refusal", len(records), 0)
	case again:
		same(t, "recorded entry", e.Number, before.entry)
		same(t, "recorded time", e.Time, before.at)
		same(t, "records of a repeated order", len(records), 0)
	case rapid.IntRange(0, 3).Draw(t, "dies") == 0: // before its disk has them
		w.restart(t)
		same(t, "entries after a crash", w.LastEntry(), entries)
	default:
		w.store.append(records)
		w.keys[o.key] = remembered{o.words(), e.Number, e.Time}
		w.balance[o.to] += o.amount
		w.balance[o.from] -= o.amount
	}
}

// confirm forgets one key: the same order is a new one then.
func (w *ordersWorld) confirm(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "confirmed")
	w.store.append(w.Orders.Confirm(key))
	delete(w.keys, key)
}

// adopt gives an order that is remembered to another key, as for a command that was
// killed and given again.
func (w *ordersWorld) adopt(t *rapid.T) {
	old := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "old")
	key := rapid.SampledFrom([]string{"a", "d", "e", ""}).Draw(t, "new")
	have, known := w.keys[old]
	if known {
		same(t, "is found by its words", slices.Contains(w.Orders.Unconfirmed(have.words), old), true)
	}
	_, taken := w.keys[key]
	e, records, err := w.Orders.Adopt(old, key)
	if want := known && !taken && key != ""; (err == nil) != want {
		t.Fatalf("%q adopted by %q: %v, want it to be possible: %t", old, key, err, want)
	} else if !want {
		return
	}
	same(t, "adopted entry", e.Number, have.entry)
	w.store.append(records)
	delete(w.keys, old)
	w.keys[key] = have
}

func (w *ordersWorld) restart(t *rapid.T) {
	if err := w.reload(); err != nil {
		t.Fatal(err)
	}
}

// TestOrdersAreCarriedOutOnce gives random orders under few keys to a bank that
// crashes, and holds it against an oracle that counts each order once.
func TestOrdersAreCarriedOutOnce(t *testing.T) {
	came := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := &ordersWorld{bank: &bank{store: memory{}, now: start()}, keys: map[string]remembered{}, balance: map[protocol.AgentID]protocol.Credits{}, came: came}
		w.restart(t)
		for _, name := range []string{"ann", "bob"} {
			_, err := saved[ledger.Entry](w.bank)(w.Open(w.now, agent(name), name))
			same(t, "open", code(err), "")
		}
		for range 60 {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0:
				w.restart(t)
			case 1:
				w.now = w.now.Add(time.Duration(rapid.IntRange(-5, 40).Draw(t, "hours")) * time.Hour)
				w.expire()
				maps.DeleteFunc(w.keys, func(_ string, o remembered) bool { return w.now.Sub(o.at) > protocol.OrderMemory })
			case 2:
				w.confirm(t)
			case 3:
				w.adopt(t)
			default:
				w.order(t)
			}
			for _, name := range []string{"ann", "bob"} {
				a, _ := w.Account(agent(name))
				same(t, name, a.Lines[0].Balance, w.balance[agent(name)])
			}
		}
		sound(t, w.bank)
	})
	if testing.Short() {
		return
	}
	for _, what := range []string{" false", " true", "mismatch false", "malformed false", "funds false"} {
		if came[what] == 0 {
			t.Errorf("the walk never came to %q", what)
		}
	}
}

// A bank dies at every place of a row of orders and exchanges, or is restored from a
// backup of then. Given again from the first on, they come to what they did without.
func TestAKilledBankIsGivenItsOrdersAgain(t *testing.T) {
	b := newBank(t)
	for _, name := range []string{"ann", "bob"} {
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent(name), name))))
	}
	b.must(t, "rate", ignore(saved[ledger.Entry](b)(b.Exchange.SetRate(b.now, "cr", "eur", protocol.Credit, ""))))
	b.must(t, "overdraft", ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, ledger.House, "eur", 100))))
	orders := []given{
		{"k1", "", agent("ann"), 40}, {"k2", "", agent("ann"), 40}, // two alike, meant as two
		{"k3", agent("ann"), agent("bob"), 7}, {"k4", "", agent("bob"), 1},
	}
	all := func(b *bank) (backups []memory) {
		for i, o := range orders {
			_, _, records, err := b.give(o)
			b.must(t, o.key, err)
			b.store.append(records)
			backups = append(backups, b.store.clone())
			id := fmt.Sprint("x", i)
			q, err := saved[ledger.Quote](b)(b.Exchange.Quote(b.now, agent("ann"), id, "cr", "eur", 3))
			b.must(t, "quote", err)
			backups = append(backups, b.store.clone())
			if q.Entry == 0 {
				q, err = saved[ledger.Quote](b)(b.Exchange.CarryOut(b.now, agent("ann"), id, 3))
				b.must(t, "exchange", err)
			}
			if q.Entry == 0 || q.Gets != 3 {
				t.Fatalf("exchange %s: %+v", id, q)
			}
			backups = append(backups, b.store.clone())
		}
		return backups
	}
	backups := all(b)
	want := b.Accounts()
	for i, store := range backups {
		for _, later := range []time.Duration{0, time.Hour, protocol.OrderMemory} {
			again := &bank{store: store.clone(), now: b.now.Add(later)}
			b.must(t, "reload", again.reload())
			again.expire()
			all(again)
			if got := again.Accounts(); !slices.EqualFunc(got, want, func(x, y ledger.Account) bool { return slices.Equal(x.Lines, y.Lines) }) {
				t.Errorf("killed after record %d, and %s later: %+v, want %+v", i, later, got, want)
			}
			sound(t, again)
		}
	}
}

// A bank that recovers from a backup still answers what it remembers, and nothing new.
func TestOrdersDuringRecovery(t *testing.T) {
	b := newBank(t)
	b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
	o := given{"k", "", agent("ann"), 4}
	first, _, records, err := b.give(o)
	b.must(t, "order", err)
	b.store.append(records)
	b.must(t, "recovery", ignore(saved[ledger.Entry](b)(b.SetRecovery(b.now, true, ""))))
	b.must(t, "reload", b.reload())
	if e, again, _, err := b.give(o); err != nil || !again || e.Number != first.Number {
		t.Errorf("a repeated order: entry %d, again %t, %v", e.Number, again, err)
	}
	sound(t, b)
}

// An audit finds keys without their entry, twice the same key, and a key of something
// that no operator ordered.
func TestAuditOfOrders(t *testing.T) {
	for name, harm := range map[string]func(rows map[string][]byte, key string){
		"no entry":  func(rows map[string][]byte, key string) { rows[ledger.NumberKey(99)] = rows[key]; delete(rows, key) },
		"a hold":    func(rows map[string][]byte, key string) { rows[ledger.NumberKey(3)] = rows[key]; delete(rows, key) },
		"twice":     func(rows map[string][]byte, key string) { rows[ledger.NumberKey(1)] = rows[key] },
		"cut short": func(rows map[string][]byte, key string) { rows[key] = rows[key][:9] },
	} {
		b := newBank(t)
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
		_, _, records, err := b.give(given{"k", "", agent("ann"), 4})
		b.must(t, "order", err)
		b.store.append(records)
		b.must(t, "hold", ignore(saved[ledger.Hold](b)(b.Hold(b.now, agent("ann"), "cr", 1, b.now.Add(time.Hour), ""))))
		sound(t, b)
		harm(b.store[ledger.TableOrders], ledger.NumberKey(2))
		if r, err := ledger.Audit(b.store); err != nil || len(r.Bad) == 0 {
			t.Errorf("%s: not found (%v)", name, err)
		}
	}
}

// What is remembered is bounded, and beyond the bound a key is refused until some are
// forgotten.
func TestTheOrdersThatAreRememberedAreBounded(t *testing.T) {
	b := newBank(t)
	b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
	order := func(i int) error {
		_, _, records, err := b.give(given{fmt.Sprint(i), "", agent("ann"), 1})
		b.store.append(records)
		return err
	}
	for i := range ledger.MaxOrders {
		b.must(t, "order", order(i))
	}
	if got := code(order(-1)); got != protocol.CodeLimit {
		t.Errorf("one more: %q, want a limit", got)
	}
	b.now = b.now.Add(protocol.OrderMemory + time.Second)
	b.expire()
	b.must(t, "after some were forgotten", order(-1))
	if got := code(ignoreOrder(b.give(given{strings.Repeat("k", ledger.MaxOrderKey+1), "", agent("ann"), 1}))); got != protocol.CodeMalformed {
		t.Errorf("a long key: %q, want malformed", got)
	}
}

func ignoreOrder(_ ledger.Entry, _ bool, _ []protocol.Record, err error) error { return err }

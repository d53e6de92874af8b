package ledger_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/decay"
	"ramp/bank/ledger"
	"ramp/protocol"
)

const precision = 600

func float(n int64) *big.Float { return new(big.Float).SetPrec(precision).SetInt64(n) }

// expMinus is e^-y by way of e^y and big floats, unlike the ledger's.
func expMinus(y *big.Float) *big.Float {
	const halvings = 40
	small := new(big.Float).SetMantExp(y, -halvings)
	sum, term := float(1), float(1)
	for i := int64(1); i <= 30; i++ {
		term.Mul(term, small)
		term.Quo(term, float(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.Quo(float(1), sum)
}

// flow is where dx/dt = a − b·x leads from x in a time.
func flow(x *big.Float, income protocol.Credits, ppm int64, elapsed time.Duration) *big.Float {
	b := new(big.Float).Quo(float(ppm), float(1_000_000))
	days := new(big.Float).Quo(float(int64(elapsed)), float(int64(24*time.Hour)))
	tends := new(big.Float).Quo(float(int64(income)), b)
	far := new(big.Float).Sub(x, tends)
	far.Mul(far, expMinus(days.Mul(days, b)))
	return far.Add(far, tends)
}

// floorOf is the greatest integer not above x.
func floorOf(x *big.Float) protocol.Credits {
	n, accuracy := x.Int64()
	if accuracy == big.Above {
		n--
	}
	return protocol.Credits(n)
}

func anyDecay(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{1, 10, 50_000, 100_000, 1_000_000, ledger.MaxDecay}).Draw(t, "decay")
}

func drawIncome(t *rapid.T, ppm int64) protocol.Credits {
	most := min(int64(ledger.MaxIncome)/1_000_000*ppm, 1<<44)
	return protocol.Credits(rapid.Int64Range(0, most).Draw(t, "income"))
}

func elapsed(t *rapid.T, what string) time.Duration {
	most := rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 24 * time.Hour, 40 * 24 * time.Hour, 3650 * 24 * time.Hour}).Draw(t, what+" unit")
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, what))
}

func grown(balance, income protocol.Credits, ppm int64, elapsed time.Duration) protocol.Credits {
	whole, _ := decay.Grow(balance, 0, income, ppm, elapsed)
	return whole
}

func TestGrownIsTheExactValueRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ppm, at := anyDecay(t), elapsed(t, "time")
		x, income := protocol.Credits(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "x")), drawIncome(t, ppm)
		exact := flow(float(int64(x)), income, ppm, at)
		got := grown(x, income, ppm, at)
		if d := new(big.Float).Sub(exact, float(int64(got))); d.Cmp(big.NewFloat(-1e-9)) < 0 || d.Cmp(big.NewFloat(1+1e-9)) > 0 { // not even one micro-credit off
			t.Fatalf("%s after %s at %s a day and %d ppm: %s, exact %s", x, at, income, ppm, got, exact.Text('f', 12))
		}
	})
}

func TestGrownGoesOneWayAndNeverBeyond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ppm := anyDecay(t)
		x, income := protocol.Credits(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "x")), drawIncome(t, ppm)
		first := elapsed(t, "first")
		then := first + elapsed(t, "then")
		a, b := grown(x, income, ppm, first), grown(x, income, ppm, then)
		tends := floorOf(new(big.Float).Quo(new(big.Float).Mul(float(int64(income)), float(1_000_000)), float(ppm)))
		if rising := x <= tends; rising && (a < x || b < a || b > tends) || !rising && (a > x || b > a || b < tends) {
			t.Fatalf("from %s to %s after %s and %s after %s, towards %s", x, a, first, b, then, tends)
		}
	})
}

// incomeWorld is a bank with an allowance, and where its accounts would stand if
// numbers had no end.
type incomeWorld struct {
	*bank
	ppm    int64
	exact  map[protocol.AgentID]*big.Float
	income map[protocol.AgentID]protocol.Credits
	users  []protocol.AgentID
}

func newIncomeWorld(t *rapid.T) *incomeWorld {
	w := &incomeWorld{bank: &bank{store: memory{}, now: start()}, ppm: anyDecay(t),
		exact: map[protocol.AgentID]*big.Float{}, income: map[protocol.AgentID]protocol.Credits{}}
	w.load(t)
	w.must(t)(w.SetPolicy(w.now, "cr", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: w.ppm}))
	for _, name := range []string{"ann", "bob", "eve"} {
		id := agent(name)
		w.must(t)(w.Open(w.now, id, name))
		w.users, w.exact[id] = append(w.users, id), float(0)
	}
	return w
}

func (w *incomeWorld) load(t *rapid.T) {
	if err := w.reload(); err != nil {
		t.Fatal(err)
	}
}

func (w *incomeWorld) must(t *rapid.T) func(ledger.Entry, []protocol.Record, error) {
	return func(_ ledger.Entry, records []protocol.Record, err error) {
		if err != nil {
			t.Fatal(err)
		}
		w.store.append(records)
	}
}

func (w *incomeWorld) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for id, x := range w.exact {
		w.exact[id] = flow(x, w.income[id], w.ppm, d)
	}
}

func (w *incomeWorld) add(id protocol.AgentID, amount protocol.Credits) {
	w.exact[id] = new(big.Float).Add(w.exact[id], float(int64(amount)))
}

func (w *incomeWorld) step(t *rapid.T) {
	id, other := rapid.SampledFrom(w.users).Draw(t, "who"), rapid.SampledFrom(append(w.users, ledger.Issuer)).Draw(t, "other")
	if _, issued := w.Account(ledger.Issuer); !issued && other == ledger.Issuer {
		other = id // nobody is there yet
	}
	amount := protocol.Credits(rapid.Int64Range(1, 1<<36).Draw(t, "amount"))
	switch rapid.IntRange(0, 9).Draw(t, "op") {
	case 0:
		w.must(t)(w.Credit(w.now, id, "cr", amount, ""))
		w.add(id, amount)
	case 1, 2:
		_, err := saved[ledger.Entry](w.bank)(w.Transfer(w.now, id, other, "cr", amount, ledger.Disputed{}, ""))
		have := floorOf(w.exact[id])
		if id != other && (err == nil && amount > have+1 || err != nil && amount < have-1) {
			t.Fatalf("transfer of %s out of %s: %v", amount, have, err)
		}
		if err == nil {
			w.add(id, -amount)
			if other != ledger.Issuer { // what goes there is money no more
				w.add(other, amount)
			}
		}
	case 3:
		income := drawIncome(t, w.ppm)
		w.must(t)(w.SetAllowance(w.now, id, "cr", income, ""))
		w.income[id] = income
	case 4:
		if h, err := saved[ledger.Hold](w.bank)(w.Hold(w.now, id, "cr", amount, w.now.Add(time.Hour), "")); err == nil {
			_, _ = saved[ledger.Entry](w.bank)(w.VoidHold(w.now, h.Number, ""))
		}
	case 5:
		w.load(t)
	default:
		w.pass(elapsed(t, "time") / 40)
	}
}

// TestIncomes does 21,000 random things to a bank with an allowance; with
// -rapid.checks=5000, a million.
// However time is divided by payments, reads and restarts, no account is ever as
// much as one micro-credit away from the exact value.
func TestIncomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newIncomeWorld(t)
		for range 210 {
			if w.step(t); w.now.Year() > 2150 {
				break
			}
			for _, id := range w.users {
				a, _ := w.AccountAt(w.now, id)
				if d := a.Lines[0].Balance - floorOf(w.exact[id]); d < -1 || d > 1 {
					t.Fatalf("%s has %s, exact %s", id.Name(), a.Lines[0].Balance, w.exact[id].Text('f', 9))
				}
			}
			same(t, "sum", w.Sum()["cr"], 0)
		}
		sound(t, w.bank)
	})
}

// Transfers between users change nobody's income in sum (001), and a hoard
// decays to what its income allows.
func TestTransfersDoNotMakeMoney(t *testing.T) {
	still, busy := incomeBank(t), incomeBank(t)
	for day := range 100 {
		busy.now = start().Add(time.Duration(day) * 24 * time.Hour)
		_, _ = saved[ledger.Entry](busy)(busy.Transfer(busy.now, agent("ann"), agent("bob"), "cr", 40*protocol.Credit, ledger.Disputed{}, ""))
		_, _ = saved[ledger.Entry](busy)(busy.Transfer(busy.now, agent("bob"), agent("ann"), "cr", 70*protocol.Credit, ledger.Disputed{}, ""))
	}
	at := start().Add(100 * 24 * time.Hour)
	if a, b := total(still, at), total(busy, at); a-b > 2 || b-a > 2 {
		t.Errorf("without transfers %s, with them %s", a, b)
	}
	if a, _ := still.AccountAt(start().Add(1000*24*time.Hour), agent("ann")); a.Lines[0].Balance != 100*protocol.Credit {
		t.Errorf("a hoard of 1000 is %s after 1000 days, want 100", a.Lines[0].Balance)
	}
}

func incomeBank(t *testing.T) *bank {
	b := newBank(t)
	must := func(_ ledger.Entry, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(saved[ledger.Entry](b)(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: 100_000})))
	for _, name := range []string{"ann", "bob"} {
		must(saved[ledger.Entry](b)(b.Open(b.now, agent(name), name)))
		must(saved[ledger.Entry](b)(b.SetAllowance(b.now, agent(name), "cr", 10*protocol.Credit, "")))
	}
	must(saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", 1000*protocol.Credit, "")))
	return b
}

func total(b *bank, at time.Time) (sum protocol.Credits) {
	for _, name := range []string{"ann", "bob"} {
		a, _ := b.AccountAt(at, agent(name))
		sum += a.Lines[0].Balance
	}
	return sum
}

func BenchmarkGrown(b *testing.B) {
	for b.Loop() {
		grown(123_456_789, 10*protocol.Credit, 100_000, 12345*time.Second)
	}
}

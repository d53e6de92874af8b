package markettest_test

import (
	"maps"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol/message"
)

// goBack makes a journal what it was.
func goBack(s, was markettest.Store) {
	clear(s)
	maps.Copy(s, was.Copy())
}

// forgetful is a seller that loses its journal, or goes back to a copy of it, at
// one of its Outputs.
type forgetful struct {
	seller string
	copied int // the Output after which its journal is copied; 0: it is lost
	at     int // the Output at which it crashes and has the copy
	point  sim.Point
	down   time.Duration
}

// buyForgetfully buys two units while a seller forgets, and another one when all
// is quiet again.
func buyForgetfully(t *testing.T, cast *markettest.Cast, f forgetful) string {
	cfg := spread(1)
	cfg.Restart = f.down
	m := markettest.New(t, cast, cfg)
	store, older := m.Store(f.seller), markettest.Store{}
	m.Crash = func(b sim.Boundary) sim.Point {
		if b.Host.Name != f.seller {
			return sim.Survives
		}
		if b.Output == f.copied+1 {
			older = store.Copy()
		}
		if b.Output != f.at {
			return sim.Survives
		}
		return f.point
	}
	m.Buy("p", 2, message.Options{})
	m.RunUntil(10*time.Second, func() bool { return m.Role(f.seller) == nil })
	if m.Role(f.seller) == nil { // it is down: what it had is gone
		if f.copied == 0 {
			older = markettest.Store{}
		}
		goBack(store, older)
	}
	m.Run(12 * time.Minute)
	m.Buy("q", 1, message.Options{})
	m.Run(5 * time.Minute)
	if err := m.Check(); err != nil {
		t.Errorf("%+v: %v", f, err)
	}
	if p, q := m.Purchases()["p"], m.Purchases()["q"]; p.Settled == q.Settled { // there is room for one of them
		t.Errorf("%+v: p is %s, q is %s (%s)", f, p.State, q.State, q.Why)
	}
	return m.Purchases()["p"].State
}

// Whenever a seller loses its journal, or has an older copy of it: what was sold
// is sold, once, and what was not is free again.
func TestAJournalMayBeLostOrOlder(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	seller, outputs := rehearse(t, cast, 2)
	from, to := outputs[seller][0], outputs[seller][1]
	states, runs := map[string]int{}, 0
	for at := from; at <= to+1; at++ {
		for _, copied := range []int{0, from - 1, (from + at) / 2, at - 1} {
			for point := range points {
				for _, down := range []time.Duration{time.Second, 100 * time.Second} { // the holds go on, or are over
					runs++
					states[buyForgetfully(t, cast, forgetful{seller, copied, at, point, down})]++
				}
			}
		}
	}
	t.Logf("%d runs: %v", runs, states)
	if states["settled"] == 0 || states["settled"] == runs {
		t.Errorf("%v of %d: the losses miss what they are for", states, runs)
	}
}

// A batch system that has forgotten as well does not lead to a second sale: the
// slots are made again before anything is sold.
func TestJournalAndBatchSystemMayBothBeLost(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, spread(1))
	m.Buy("p", 1, message.Options{})
	m.Run(10 * time.Second)
	seller := markettest.Seller(1)
	if !m.Purchases()["p"].Settled {
		t.Fatalf("%+v", m.Purchases()["p"])
	}
	goBack(m.Store(seller), markettest.Store{})
	clear(m.Batch(seller).Slots)
	m.Kill(seller, time.Second)
	m.Run(1500 * time.Millisecond)
	m.Buy("q", 1, message.Options{})
	m.Run(12 * time.Minute)
	if q := m.Purchases()["q"]; q.Settled {
		t.Errorf("the same cores were sold again: %+v", q)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

// While a bank is away, a seller that has started sells nothing, and frees
// nothing that may be sold. It is not even there for the market.
func TestNothingIsSoldBeforeTheBankHasTold(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, spread(1))
	m.Buy("p", 1, message.Options{})
	m.Run(10 * time.Second)
	seller := markettest.Seller(1)
	m.Kill(markettest.Bank, 30*time.Minute)
	goBack(m.Store(seller), markettest.Store{})
	m.Kill(seller, time.Second)
	m.Run(20 * time.Minute)
	m.Buy("q", 1, message.Options{})
	m.Run(time.Minute)
	if q := m.Purchases()["q"]; q.State != user.StateFailed {
		t.Errorf("%s, %v", q.State, q.Reasons)
	}
	if n := len(m.Batch(seller).Slots); n != 1 {
		t.Errorf("%d reservations, want the one that was sold", n)
	}
	m.Run(30 * time.Minute)
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

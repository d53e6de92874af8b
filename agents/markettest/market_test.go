package markettest_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// bound is until when everything must be decided once faults have stopped: the
// rounds and a best-offer round at their patience, the votes, the longest hold,
// and one back-off.
const bound = 5*protocol.DefaultRoundLimit + 2*protocol.VoteTimeout + protocol.DefaultHold + 2*protocol.RetryMost

// over reports whether no purchase of the user goes on.
func over(m *markettest.Market) bool {
	list := m.Purchases()
	for _, p := range list {
		switch p.State {
		case user.StateSettled, user.StateVoid, user.StateFailed, user.StateInterrupted, user.StateCancelled:
		default:
			return false
		}
	}
	return len(list) > 0
}

// conclude lets the bound pass and checks what must hold.
func conclude(tb testing.TB, m *markettest.Market) {
	tb.Helper()
	m.Run(bound)
	if err := m.Check(); err != nil {
		tb.Fatalf("at %s: %v", m.Now().Format(time.TimeOnly), err)
	}
}

// Every number of units is bought whole from every number of sellers.
func TestAllUnitsAreSoldAndPaidOnce(t *testing.T) {
	for _, sellers := range []int{1, 2, 3, 20} {
		cast := markettest.NewCast(t, sellers)
		for _, units := range []int{1, 3, 25} {
			t.Run(fmt.Sprintf("%d units from %d sellers", units, sellers), func(t *testing.T) {
				m := markettest.New(t, cast, markettest.Config{Seed: 1})
				m.Buy("p", units, message.Options{})
				if !m.RunUntil(10*time.Second, func() bool { return over(m) }) {
					t.Fatalf("after 10 s: %+v", m.Purchases())
				}
				conclude(t, m)
				p := m.Purchases()["p"]
				if p.State != user.StateSettled || len(p.Units) != units {
					t.Fatalf("%s with %d units: %s", p.State, len(p.Units), p.Why)
				}
				if got := m.Balance(markettest.User); got != 1_000_000*protocol.Credit-p.Total {
					t.Fatalf("the user has %s after paying %s", got, p.Total)
				}
				if len(m.Refused) > 0 {
					t.Fatalf("messages were refused: %v", m.Refused)
				}
			})
		}
	}
}

// The same seed gives the same run.
func TestRunsRepeat(t *testing.T) {
	cast := markettest.NewCast(t, 3)
	run := func(seed uint64) string {
		m := markettest.New(t, cast, markettest.Config{Seed: seed})
		var trace string
		m.Fate = func(p markettest.Packet) markettest.Fate {
			trace += fmt.Sprintf("%s %s>%s %s %x\n", m.Now(), p.From, p.To, p.Message.Body.Kind(), p.Bytes)
			return markettest.Fate{}
		}
		m.Buy("p", 3, message.Options{})
		conclude(t, m)
		return trace
	}
	if first, second := run(7), run(7); first != second {
		t.Fatal("two runs of one seed differ")
	}
	if run(7) == run(8) {
		t.Fatal("two seeds give the same run")
	}
}

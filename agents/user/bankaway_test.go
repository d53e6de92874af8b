package user_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/bank"
	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol/message"
)

// recovery begins or ends the recovery of a market's bank.
func recovery(t *testing.T, m *markettest.Market, on bool) {
	t.Helper()
	_, out, err := m.Role(markettest.Bank).(*bank.Role).SetRecovery(m.Now(), on, "")
	if err == nil {
		err = m.Store(markettest.Bank).Append(out.Save)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An owner learns once why its bank does not decide, and when it decides again.
func TestAnOwnerLearnsWhyTheBankDoesNotDecide(t *testing.T) {
	m, _ := open(t, 1, trusting)
	recovery(t, m, true)
	m.Buy("p", 1, message.Options{})
	waits := func() bool { return strings.Contains(last(m).Purchase.Waits, "was restored from a backup") }
	if !m.RunUntil(time.Minute, waits) {
		t.Fatalf("told %+v", last(m).Purchase)
	}
	told := len(m.Progress)
	m.Run(10 * time.Minute)
	if n := len(m.Progress) - told; n != 0 || last(m).Done {
		t.Errorf("told %d times more, done %t", n, last(m).Done)
	}
	if p := m.Purchases()["p"]; p.Waits != "" {
		t.Errorf("the journal has %q", p.Waits)
	}
	recovery(t, m, false)
	if !m.RunUntil(5*time.Minute, func() bool { return last(m).Done }) {
		t.Fatal("it does not end")
	}
	if p := last(m).Purchase; p.Waits != "" || p.State != user.StateVoid {
		t.Errorf("ended %s, waiting: %q", p.State, p.Waits)
	}
}

// The same for a bank that is away.
func TestAnOwnerLearnsThatTheBankIsAway(t *testing.T) {
	m, _ := open(t, 1, trusting)
	away := true
	m.Fate = func(p markettest.Packet) markettest.Fate {
		return markettest.Fate{Drop: away && p.To == markettest.Bank, Tell: true}
	}
	m.Buy("p", 1, message.Options{})
	if !m.RunUntil(time.Minute, func() bool { return last(m).Purchase.Waits == "it cannot be reached" }) {
		t.Fatalf("told %+v", last(m).Purchase)
	}
	away = false
	if !m.RunUntil(5*time.Minute, func() bool { return last(m).Done }) || last(m).Purchase.Waits != "" {
		t.Fatalf("it does not end: %+v", last(m).Purchase)
	}
}

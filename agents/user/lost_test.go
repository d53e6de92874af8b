package user_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A site loses a sold slot and cannot reserve it again: the buyer gets a report and a
// refund, also if its agent was restarted.
func TestALostUnitIsReportedAndRefunded(t *testing.T) {
	for name, down := range map[string]time.Duration{"the buyer's agent runs on": 0, "it was restarted": time.Second, "it was down until the slot was over": 30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, 1, nil)
			settle(t, m, 1, message.Options{})
			if down > 0 {
				m.Kill(markettest.User, down)
				m.Run(3 * time.Second)
			}
			b := m.Batch(markettest.Seller(1))
			clear(b.Slots)
			b.Cores = 0
			m.Run(down + 3*time.Minute)
			p := m.Purchases()["p"]
			if late := m.Now().Sub(p.Units[0].End); late > 0 != (down > time.Hour) {
				t.Fatalf("the slot ended %s ago", late)
			}
			if u := p.Units[0]; u.State != user.StateCancelled || p.RefundTotal != u.Cost || !strings.Contains(p.Why, "has lost its slot") {
				t.Fatalf("%+v", p)
			}
			if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit; got != want {
				t.Fatalf("the user has %s, want %s", got, want)
			}
		})
	}
}

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
	for name, crash := range map[string]bool{"the buyer's agent runs on": false, "it was restarted": true} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, 1, nil)
			settle(t, m, 1, message.Options{})
			if crash {
				m.Kill(markettest.User, time.Second)
				m.Run(3 * time.Second)
			}
			b := m.Batch(markettest.Seller(1))
			clear(b.Slots)
			b.Cores = 0
			m.Run(3 * time.Minute)
			p := m.Purchases()["p"]
			if u := p.Units[0]; u.State != user.StateCancelled || p.RefundTotal != u.Cost || !strings.Contains(p.Why, "has lost its slot") {
				t.Fatalf("%+v", p)
			}
			if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit; got != want {
				t.Fatalf("the user has %s, want %s", got, want)
			}
		})
	}
}

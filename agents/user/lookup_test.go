package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A command that is killed while indexes keep silent and given again finds the purchase, as
// if it were killed later: it is in the journal.
func TestAPurchaseIsSavedBeforeItsSellersAreSearched(t *testing.T) {
	m, _ := open(t, 2, trusting)
	m.Run(time.Minute)
	m.Inject(markettest.Stranger, markettest.User, protocol.Message{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.Everyone}, Protocol: protocol.ProtocolPresence,
		Body: message.Presence{Agent: protocol.KindBank, Index: 1 + 400, TTL: time.Hour, Counter: 1},
	})
	m.Run(time.Second)
	begun := m.Now()
	m.Buy("p", 1, message.Options{Objective: protocol.ObjectiveTime})
	m.Run(100 * time.Millisecond)
	row, err := user.ReadRow(m.Store(markettest.User)[user.TablePurchases]["p"])
	if err != nil || row.Purchase.State != user.StateBidding || len(row.Order.Document) == 0 || len(m.Progress) > 0 {
		t.Errorf("%v after the order: %+v, %d reports, %v", m.Now().Sub(begun), row.Purchase, len(m.Progress), err)
	}
	m.RunUntil(time.Minute, func() bool { return len(m.Progress) > 0 && last(m).Done })
	if p := m.Purchases()["p"]; !p.Settled {
		t.Errorf("%s: %s", p.State, p.Why)
	}
}

package user_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// give asks for units of a settled purchase to be taken back.
func give(t *testing.T, m *markettest.Market, unit int) {
	t.Helper()
	m.Tell(message.CancelPurchase{ID: "p", Unit: unit, Row: m.Store(markettest.User)[user.TablePurchases]["p"]})
}

func TestCancelASettledPurchase(t *testing.T) {
	m, _ := open(t, 2, nil)
	p := settle(t, m, 2, message.Options{})
	give(t, m, 0)
	m.Run(5 * time.Second)
	after := m.Purchases()["p"]
	if after.Units[0].State != user.StateCancelled || after.Units[1].State != user.StateSettled {
		t.Fatalf("%+v", after.Units)
	}
	fee := p.Units[0].Cost / 10
	if after.RefundTotal != p.Units[0].Cost-fee {
		t.Fatalf("refunded %s of %s", after.RefundTotal, p.Units[0].Cost)
	}
	give(t, m, -1)
	m.Run(5 * time.Second)
	give(t, m, -1)
	if p := last(m); !p.Done || p.Purchase.Units[1].State != user.StateCancelled {
		t.Fatalf("%+v", p)
	}
	if r := receipt(t, m); len(r.Refunds) != 2 || r.Refunds[0].Amount+r.Refunds[1].Amount != m.Purchases()["p"].RefundTotal {
		t.Errorf("the user's receipt has refunds %+v", r.Refunds)
	}
	if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit-p.Total+m.Purchases()["p"].RefundTotal; got != want {
		t.Fatalf("the user has %s, want %s", got, want)
	}
	for i := range 2 {
		if n := len(m.Batch(markettest.Seller(i + 1)).Slots); n != 0 {
			t.Errorf("%d reservations are left", n)
		}
	}
}

// receipt is the one that the user's journal has last of its only contract.
func receipt(t *testing.T, m *markettest.Market) (last protocol.Receipt) {
	t.Helper()
	err := reserve.EachBought(m.Store(markettest.User), func(p reserve.DecidedContract) error { last = p.Decided; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// Two cancellations of one purchase, begun one after the other, crashes between:
// neither undoes the other's record.
func TestCancellationsOfOnePurchaseShareItsRecord(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			m, cast := open(t, 2, nil)
			p := settle(t, m, 2, message.Options{})
			slow := p.Units[1].Resource
			m.Fate = func(p markettest.Packet) markettest.Fate {
				if p.From == slow && p.Message.Receivers[0] == cast.ID(markettest.User) {
					return markettest.Fate{Delay: 10 * time.Second}
				}
				return markettest.Fate{}
			}
			give(t, m, 0)
			give(t, m, 1)
			m.Run(5 * time.Second)
			if crash {
				m.Kill(markettest.User, time.Second)
			}
			m.Run(time.Minute)
			after := m.Purchases()["p"]
			if after.Units[0].State != user.StateCancelled || after.Units[1].State != user.StateCancelled {
				t.Fatalf("%+v", after.Units)
			}
			if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit-p.Total+after.RefundTotal; got != want {
				t.Fatalf("the user has %s, believes %s", got, want)
			}
		})
	}
}

// A seller that cannot answer now is asked again; one that refuses is believed.
func TestCancellationIsAskedUntilItIsDecided(t *testing.T) {
	m, cast := open(t, 1, nil)
	settle(t, m, 1, message.Options{})
	down := true
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, ok := p.Message.Body.(message.UnitCancellation); ok && down {
			m.Inject(markettest.Seller(1), markettest.User, protocol.Message{
				Performative: protocol.Failure, Receivers: []protocol.AgentID{cast.ID(markettest.User)}, Protocol: protocol.ProtocolRequest,
				Conversation: "p", InReplyTo: p.Message.ReplyWith, Body: message.Refused(protocol.CodeUnavailable, "cannot write"),
			})
			return markettest.Fate{Drop: true}
		}
		return markettest.Fate{}
	}
	give(t, m, 0)
	m.Run(4 * time.Minute)
	if p := last(m); !p.Done || p.Purchase.Units[0].State != user.StateCancelling || p.Purchase.Why == "" {
		t.Fatalf("after 4 minutes: %+v", p)
	}
	down = false
	m.Run(time.Minute)
	if s := m.Purchases()["p"].Units[0].State; s != user.StateCancelled {
		t.Fatalf("the unit is %s", s)
	}
}

// A refusal of an earlier try, which arrives late, is not taken for one of the
// next.
func TestALateRefusalOfAnEarlierCancellation(t *testing.T) {
	m, cast := open(t, 1, nil)
	settle(t, m, 1, message.Options{})
	var first protocol.Message
	m.Fate = func(p markettest.Packet) markettest.Fate {
		_, ok := p.Message.Body.(message.UnitCancellation)
		if ok && first.Body == nil {
			first = p.Message
		}
		return markettest.Fate{Drop: ok && m.Now().Before(markettest.Dawn.Add(time.Minute))}
	}
	refuse := func() {
		m.Inject(markettest.Seller(1), markettest.User, protocol.Message{
			Performative: protocol.Refuse, Receivers: []protocol.AgentID{cast.ID(markettest.User)}, Protocol: protocol.ProtocolRequest,
			Conversation: "p", InReplyTo: first.ReplyWith, Body: message.Refused(protocol.CodeMismatch, "not yet"),
		})
		m.Run(100 * time.Millisecond)
	}
	give(t, m, 0)
	refuse()
	if s := m.Purchases()["p"].Units[0].State; s != user.StateSettled {
		t.Fatalf("after the refusal the unit is %s", s)
	}
	give(t, m, 0)
	refuse()
	m.Run(2 * time.Minute)
	if s := m.Purchases()["p"].Units[0].State; s != user.StateCancelled {
		t.Fatalf("after a refusal of the earlier try the unit is %s (%s)", s, m.Purchases()["p"].Why)
	}
}

func TestACancellationThatIsTooLate(t *testing.T) {
	m, _ := open(t, 1, nil)
	p := settle(t, m, 1, message.Options{})
	m.Run(p.Units[0].Start.Sub(m.Now()) - 30*time.Second)
	give(t, m, 0)
	m.Run(5 * time.Second)
	if p := m.Purchases()["p"]; p.Units[0].State != user.StateSettled || p.Why == "" {
		t.Fatalf("%+v", p)
	}
}

// A seller that is gone: the owner is told until when an answer is awaited, then that
// none has come; asking again waits again, and asks at once.
func TestACancellationSaysUntilWhenItIsAwaited(t *testing.T) {
	m, _ := open(t, 1, nil)
	settle(t, m, 1, message.Options{})
	gone, asked := true, 0
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, ok := p.Message.Body.(message.UnitCancellation); ok {
			asked++
			return markettest.Fate{Drop: gone}
		}
		return markettest.Fate{}
	}
	for again := range 3 {
		asked = 0
		give(t, m, 0)
		until := last(m).Purchase.Until
		if last(m).Done || until.Sub(m.Now()) < time.Minute || until.Sub(m.Now()) > 3*time.Minute {
			t.Fatalf("asked %d times before: done %v, %s ahead", again, last(m).Done, until.Sub(m.Now()))
		}
		m.Run(until.Sub(m.Now()) - time.Second)
		if last(m).Done || asked < 2 {
			t.Fatalf("asked %d times before: a second before it is done %v, and was asked %d times", again, last(m).Done, asked)
		}
		m.Run(2 * time.Second)
		if p := last(m); !p.Done || !p.Purchase.Until.IsZero() || p.Purchase.Units[0].State != user.StateCancelling {
			t.Fatalf("asked %d times before: %+v", again, p)
		}
	}
	gone = false
	give(t, m, 0)
	m.Run(3 * time.Second)
	if p := last(m); !p.Done || p.Purchase.Units[0].State != user.StateCancelled {
		t.Fatalf("asked again it is not done soon: %+v", p)
	}
	if m.Purchases()["p"].Until != (time.Time{}) {
		t.Error("it is stored")
	}
}

package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// drop loses one party's messages of a kind to another.
func drop(from, to, kind string) func(markettest.Packet) markettest.Fate {
	return func(p markettest.Packet) markettest.Fate {
		return markettest.Fate{Drop: p.From == from && p.To == to && p.Message.Body.Kind() == kind}
	}
}

// A receipt reaches the user on two ways; either is enough, without a query.
func TestAReceiptArrivesOnEitherOfTwoWays(t *testing.T) {
	for _, from := range []string{markettest.Bank, markettest.Seller(1)} {
		m, _ := open(t, 1, nil)
		m.Fate = drop(from, markettest.User, message.Decision{}.Kind())
		begun := m.Now()
		settle(t, m, 1, message.Options{})
		if took := last(m).Purchase.SettleMS; took > 400 {
			t.Errorf("without %s it took %.0f ms (begun %s)", from, took, begun)
		}
	}
}

// The bank's receipt overtakes a seller's copy: the purchase waits for the copy, also
// across a crash, and the seller sends the same one again.
func TestAReceiptThatOvertakesACopyWaitsForIt(t *testing.T) {
	m, _ := open(t, 2, nil)
	late := message.Countersigned{}.Kind()
	held := true
	m.Fate = func(p markettest.Packet) markettest.Fate {
		return markettest.Fate{Drop: held && p.From == markettest.Seller(2) && p.Message.Body.Kind() == late}
	}
	m.Buy("p", 2, message.Options{})
	saved := func() reserve.Saved {
		s, err := reserve.ReadSaved(m.Store(markettest.User)[reserve.TableBundles]["p"])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if !m.RunUntil(time.Second, func() bool {
		return m.Store(markettest.User)[reserve.TableBundles]["p"] != nil && len(saved().Receipt) > 0
	}) {
		t.Fatal("the receipt is not saved before the copies are there")
	}
	if last(m).Done || saved().State != reserve.Confirming {
		t.Fatalf("it is over without its receipt: %s", last(m).Purchase.State)
	}
	m.Kill(markettest.User, time.Second)
	held = false
	if !m.RunUntil(5*time.Second, func() bool { return last(m).Done }) {
		t.Fatal("it does not end")
	}
	if s := saved(); s.State != reserve.Settled || len(s.Sales) != 2 || m.Purchases()["p"].State != user.StateSettled {
		t.Fatalf("%s with %d copies", s.State, len(s.Sales))
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
}

// A bank that voids a contract by itself names only the contract: the user finds its
// purchase, even if all messages of the sellers are lost.
func TestTheUserLearnsThatTheBankVoidedAContract(t *testing.T) {
	m, cast := open(t, 2, trusting)
	m.Fate = func(p markettest.Packet) markettest.Fate { // one copy is lost, and every question
		asks := p.To == markettest.Bank && p.From != markettest.Seller(1)
		return markettest.Fate{Drop: asks || p.To == markettest.User && p.Message.Body.Kind() == (message.Countersigned{}).Kind()}
	}
	m.Buy("p", 2, message.Options{})
	if !m.RunUntil(5*time.Minute, func() bool { return last(m).Done }) {
		t.Fatal("it does not end")
	}
	if p := last(m).Purchase; p.State != user.StateVoid || p.Void != protocol.CodeSettleBy {
		t.Fatalf("%s: %s (user %s)", p.State, p.Why, cast.ID(markettest.User))
	}
}

package user_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// silentGroups has a seller offer every unit a thousand times for nearly nothing, each
// time in a group of its own, and then not answer. It counts the votes that the seller
// is asked for.
func silentGroups(m *markettest.Market, seller string, asked *int) {
	m.Fate = func(p markettest.Packet) markettest.Fate {
		offer, ok := p.Message.Body.(message.Proposal)
		_, accepted := p.Message.Body.(message.Acceptance)
		switch {
		case p.From == seller && ok && len(offer.Offers) == 1:
			msg := p.Message
			msg.Body = inGroups(offer)
			m.Inject(seller, p.To, msg)
			return markettest.Fate{Drop: true}
		case p.To == seller && accepted:
			*asked++
			return markettest.Fate{Drop: true}
		}
		return markettest.Fate{}
	}
}

func inGroups(p message.Proposal) message.Proposal {
	o := p.Offers[0]
	p.Offers = nil
	for i := range protocol.MaxOffers {
		it := o.Items[0]
		it.Price = 1_000 + protocol.Credits(i)
		it.Cost, _ = protocol.Cost(it.Price, it.Slot.Cores, it.Slot.Wall())
		o.ID, o.Group, o.Items, o.Cost = fmt.Sprint(i), fmt.Sprint("g", i), []protocol.Item{it}, it.Cost
		p.Offers = append(p.Offers, o)
	}
	p.Capacity = nil
	return p
}

// buys buys one unit, and returns how long that took.
func buys(t *testing.T, m *markettest.Market, id string) time.Duration {
	t.Helper()
	begun := m.Now()
	m.Buy(id, 1, message.Options{})
	m.RunUntil(10*time.Minute, func() bool { return last(m).Done && last(m).Purchase.ID == id })
	took := m.Now().Sub(begun)
	m.Run(time.Second)
	if p := m.Purchases()[id]; !p.Settled {
		t.Fatalf("%s after %s: %s", p.State, took, p.Why)
	}
	return took
}

// failed is how many failures of a seller the user counts.
func failed(m *markettest.Market, cast *markettest.Cast, seller string) int {
	for _, k := range m.Role(markettest.User).(*user.Role).Known(m.Now(), protocol.KindResource) {
		if k.ID == cast.ID(seller) {
			return k.Failures
		}
	}
	return -1
}

func TestASilentSellerWithAThousandOffersStopsNoPurchase(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	bad, asked := markettest.Seller(1), 0
	silentGroups(m, bad, &asked)
	for i, c := range []struct {
		why           string
		within        time.Duration
		asked, failed int // of the silent seller, afterwards
	}{
		{"its runner-up is asked too", protocol.VotePatience + time.Second, 1, 1},
		{"its runner-up is asked at once", time.Second, 2, 2},
		{"it is asked last", time.Second, 2, 2},
	} {
		if took := buys(t, m, fmt.Sprint("p", i)); took > c.within {
			t.Errorf("%s: bought after %s, want at most %s", c.why, took, c.within)
		}
		m.Run(protocol.VoteTimeout)
		if n := failed(m, cast, bad); asked != c.asked || n != c.failed {
			t.Errorf("%s: asked %d times, want %d; %d failures, want %d", c.why, asked, c.asked, n, c.failed)
		}
	}
	if n := failed(m, cast, markettest.Seller(2)); n != 0 {
		t.Errorf("the honest seller has %d failures", n)
	}
}

// A seller that votes late but in time has not failed, although the purchase went on
// without it.
func TestASlowSellerHasNotFailed(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	m := markettest.New(t, cast, markettest.Config{Seed: 1, Site: prices(map[string]protocol.Credits{markettest.Seller(1): 5, markettest.Seller(2): 40})})
	slow := markettest.Seller(1)
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, votes := p.Message.Body.(message.Vote); votes && p.From == slow {
			return markettest.Fate{Delay: protocol.VoteTimeout / 2}
		}
		return markettest.Fate{}
	}
	buys(t, m, "p")
	m.Run(2 * protocol.VoteTimeout)
	if u := m.Purchases()["p"].Units[0]; u.Resource == slow {
		t.Error("the slow seller sold")
	}
	if n := failed(m, cast, slow); n != 0 {
		t.Errorf("%d failures", n)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestFailuresSurviveARestartAndAreForgotten(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	bad, asked := markettest.Seller(1), 0
	silentGroups(m, bad, &asked)
	for i := range 2 {
		buys(t, m, fmt.Sprint(i))
		m.Run(protocol.VoteTimeout)
	}
	for _, c := range []struct{ after, want int }{{0, 2}, {6, 1}, {6, 0}} {
		m.Run(time.Duration(c.after) * time.Hour)
		m.Kill(markettest.User, time.Second)
		m.Run(time.Minute)
		if n := failed(m, cast, bad); n != c.want {
			t.Errorf("%d hours later: %d failures, want %d", c.after, n, c.want)
		}
	}
	rows := 0
	if err := m.Store(markettest.User).Each(user.TableFailures, func(string, []byte) error { rows++; return nil }); err != nil || rows != 0 {
		t.Errorf("%d rows are left: %v", rows, err)
	}
}

// A seller that votes and does not sign costs all the time until settle-by: the next bid goes to
// another, although it asks for more.
func TestASellerThatDoesNotSignIsAskedLastAtOnce(t *testing.T) {
	bad := markettest.Seller(1)
	cast := markettest.NewCast(t, 2)
	m := markettest.New(t, cast, markettest.Config{Seed: 1, Site: prices(map[string]protocol.Credits{bad: 5, markettest.Seller(2): 40})})
	m.Fate = func(p markettest.Packet) markettest.Fate {
		_, signed := p.Message.Body.(message.Countersigned)
		return markettest.Fate{Drop: p.From == bad && (signed || p.To == markettest.Bank)}
	}
	m.Buy("p", 1, message.Options{})
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	if p := m.Purchases()["p"]; p.Void != protocol.CodeSettleBy || failed(m, cast, bad) != 2 {
		t.Fatalf("%s: %s; %d failures, want 2", p.State, p.Why, failed(m, cast, bad))
	}
	buys(t, m, "p.bid2")
	if u := m.Purchases()["p.bid2"].Units[0]; u.Resource == bad {
		t.Error("it is bought from again")
	}
}

// Who was away from the network does not blame the sellers more than before.
func TestAnAbsentUserIsNoReasonToAskASellerLast(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	var back time.Time
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, confirms := p.Message.Body.(message.Confirmation); confirms && back.IsZero() {
			back = m.Now().Add(40 * time.Second)
		}
		return markettest.Fate{Drop: m.Now().Before(back)}
	}
	m.Buy("p", 1, message.Options{})
	m.RunUntil(3*time.Minute, func() bool { return last(m).Done })
	if p := m.Purchases()["p"]; p.Void != protocol.CodeSettleBy || failed(m, cast, markettest.Seller(1)) != 1 {
		t.Errorf("%s: %s; %d failures, want 1", p.State, p.Why, failed(m, cast, markettest.Seller(1)))
	}
}

// A refusal needs no words: its code alone says why nothing was bought.
func TestARefusalWithoutANote(t *testing.T) {
	m := markettest.New(t, markettest.NewCast(t, 1), markettest.Config{Seed: 1})
	m.Fate = func(p markettest.Packet) markettest.Fate {
		msg := p.Message
		_, votes := msg.Body.(message.Vote)
		if votes {
			msg.Performative, msg.Body = protocol.Refuse, message.Refused(protocol.CodeBusy, "")
			m.Inject(p.From, p.To, msg)
		}
		return markettest.Fate{Drop: votes}
	}
	m.Buy("p", 1, message.Options{})
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	if p := last(m).Purchase; p.Why != "not every seller holds what it offered (busy)" {
		t.Errorf("%s: %s", p.State, p.Why)
	}
}

// If nobody else sells, a silent seller is asked again.
func TestAFailingSellerIsBoughtFromIfThereIsNoOther(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	asked := 0
	silentGroups(m, markettest.Seller(1), &asked)
	for i := range 3 {
		m.Buy(fmt.Sprint(i), 1, message.Options{})
		m.RunUntil(time.Minute, func() bool { return last(m).Done })
		m.Run(time.Second)
	}
	if n := failed(m, cast, markettest.Seller(1)); asked != 3 || n != 3 {
		t.Fatalf("asked %d times, %d failures", asked, n)
	}
	m.Fate = nil
	buys(t, m, "p")
}

// A user that has heard no presence for minutes calls the sellers all the same, and says so
// if none answers.
func TestSellersThatAreNotHeardAnyMoreAreCalled(t *testing.T) {
	m, _ := open(t, 3, nil)
	m.Run(time.Minute)
	deaf := false
	m.Fate = func(p markettest.Packet) markettest.Fate {
		_, presence := p.Message.Body.(message.Presence)
		_, call := p.Message.Body.(message.CallForProposals)
		return markettest.Fate{Drop: p.To == markettest.User && presence || deaf && call}
	}
	m.Run(10 * time.Minute)
	buys(t, m, "first")
	deaf = true
	m.Buy("second", 1, message.Options{})
	m.RunUntil(10*time.Minute, func() bool { return last(m).Done && last(m).Purchase.ID == "second" })
	if p := last(m).Purchase; p.Found != 3 || p.Why != "no site answers: 'ramp doctor' finds the cause" {
		t.Errorf("%d found; %s", p.Found, p.Why)
	}
}

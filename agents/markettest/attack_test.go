package markettest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/again"
	"ramp/agents/markettest"
	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// commits are what a seller says after the bundle has come.
func commits(p markettest.Packet) bool {
	switch p.Message.Body.(type) {
	case message.Countersigned, message.Settlement:
		return true
	}
	return false
}

// silent is until an attack on the commit is over: past settle-by. Then its
// victims, and the attacker's own slots, must come to rest.
func silent(m *markettest.Market) bool {
	return m.Now().Before(markettest.Dawn.Add(2 * time.Minute))
}

// One seller of three does not do its part; the others get their slots back, and
// nobody pays.
func TestASellerThatFailsTheBundle(t *testing.T) {
	cast := markettest.NewCast(t, 3)
	bad := markettest.Seller(2)
	for name, fate := range map[string]func(m *markettest.Market, p markettest.Packet) markettest.Fate{
		"never confirms": func(m *markettest.Market, p markettest.Packet) markettest.Fate {
			return markettest.Fate{Drop: p.From == bad && commits(p) && silent(m)}
		},
		"votes and vanishes": func(m *markettest.Market, p markettest.Packet) markettest.Fate {
			_, voted := p.Message.Body.(message.Vote)
			if voted && p.From == bad && m.Role(bad) != nil {
				m.Kill(bad, 10*time.Minute)
			}
			return markettest.Fate{}
		},
		"countersigns late": func(_ *markettest.Market, p markettest.Packet) markettest.Fate {
			if p.From == bad && commits(p) {
				return markettest.Fate{Delay: protocol.DefaultSettle + time.Second}
			}
			return markettest.Fate{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := markettest.New(t, cast, spread(1))
			m.Fate = func(p markettest.Packet) markettest.Fate { return fate(m, p) }
			m.Buy("p", 3, message.Options{})
			m.Run(11 * time.Minute)
			conclude(t, m)
			if p := m.Purchases()["p"]; p.State != user.StateVoid {
				t.Fatalf("%s: %s", p.State, p.Why)
			}
			if p := m.Purchases()["p"]; name != "countersigns late" && !strings.HasSuffix(p.Why, "settle-by: not signed in time by "+cast.ID(bad).Name()) {
				t.Errorf("why: %s; want who did not sign", p.Why)
			}
			if got := m.Balance(markettest.User); got != 1_000_000*protocol.Credit {
				t.Fatalf("the user has %s", got)
			}
		})
	}
}

// What one seller countersigned for another contract is no copy of this one.
func TestACopyOfAnotherContract(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	var other *message.Countersigned
	m.Fate = func(p markettest.Packet) markettest.Fate {
		c, ok := p.Message.Body.(message.Countersigned)
		if ok && other == nil {
			other = &c
		}
		if ok && p.Message.Conversation == "q" {
			msg := p.Message
			msg.Body = *other
			m.Inject(markettest.Seller(1), markettest.User, msg)
		}
		return markettest.Fate{Drop: p.Message.Conversation == "q" && commits(p) && silent(m)}
	}
	m.Buy("p", 1, message.Options{})
	m.Run(10 * time.Second)
	m.Buy("q", 1, message.Options{})
	conclude(t, m)
	if a, b := m.Purchases()["p"], m.Purchases()["q"]; !a.Settled || b.State != user.StateVoid {
		t.Fatalf("p is %s, q is %s", a.State, b.State)
	}
}

// signs makes a bundle that differs from a signed one as change says.
func signs(t *testing.T, cast *markettest.Cast, v contract.Verified, at time.Time, change func(*protocol.Bundle)) contract.Verified {
	t.Helper()
	b := v.Bundle
	b.Units = slices.Clone(b.Units)
	change(&b)
	der, err := contract.Sign(cast.Credential(markettest.User), b, at)
	if err != nil {
		t.Fatal(err)
	}
	again, err := contract.OpenBundle(der, cast.Trust, at)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// A user that signs other bundles for the same reservations, or the same one
// with other signatures, gets one contract for each reservation, paid once.
func TestAUserThatSignsTwice(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	for name, change := range map[string]func(*protocol.Bundle){
		"another nonce":   func(b *protocol.Bundle) { b.Nonce = fmt.Sprintf("%032d", 7) },
		"a lower price":   func(b *protocol.Bundle) { b.Units[0].Cost--; b.Total-- },
		"a part of it":    func(b *protocol.Bundle) { b.Total -= b.Units[1].Cost; b.Units = b.Units[:1] },
		"another bank":    func(b *protocol.Bundle) { b.Bank = cast.ID(markettest.Stranger) },
		"another slot":    func(b *protocol.Bundle) { b.Units[0].Slot.End = b.Units[0].Slot.End.Add(time.Hour) },
		"other signature": func(*protocol.Bundle) {},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %v", name, first), func(t *testing.T) {
				m := markettest.New(t, cast, spread(1))
				m.Fate = func(p markettest.Packet) markettest.Fate {
					c, ok := p.Message.Body.(message.Confirmation)
					if !ok {
						return markettest.Fate{}
					}
					msg := p.Message
					msg.Body = message.Confirmation{Bundle: signs(t, cast, c.Bundle, m.Now().Add(time.Second), change)}
					m.Inject(markettest.User, p.To, msg)
					if first { // the second signature arrives before the first
						return markettest.Fate{Delay: time.Second}
					}
					return markettest.Fate{}
				}
				m.Buy("p", 2, message.Options{})
				m.Run(bound)
				named := map[string]protocol.ContractID{}
				var paid protocol.Credits
				for i := range 2 {
					for _, l := range m.Reservations(markettest.Seller(i + 1)) {
						if l.State == "held" || l.State == "reserving" || l.State == "countersigned" {
							t.Errorf("%s is %s at the end", l.ID, l.State)
						}
						if l.State == "sold" {
							paid += l.Cost
							if l.Contract == "" || named[l.ID] != "" {
								t.Errorf("%s is sold by %q and %q", l.ID, l.Contract, named[l.ID])
							}
							named[l.ID] = l.Contract
						}
					}
				}
				if got := m.Balance(markettest.User); got != 1_000_000*protocol.Credit-paid {
					t.Errorf("the user has %s after buying for %s", got, paid)
				}
			})
		}
	}
}

// trusting has sellers hold any amount without a voucher.
func trusting(_ string, cfg *resource.Config) { cfg.BuyerCoreSeconds = 1 << 40 }

// A seller wants a voucher for what blocks all of it for hours; who cannot pay gets none.
func TestNobodyHoldsWithoutMoney(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	cfg := spread(1)
	cfg.Credit = protocol.Credit
	m := markettest.New(t, cast, cfg)
	m.Buy("p", 2, message.Options{})
	conclude(t, m)
	p := m.Purchases()["p"]
	if p.State != user.StateFailed || !strings.Contains(p.Why, string(protocol.CodeFunds)) || m.Balance(markettest.User) != protocol.Credit {
		t.Fatalf("%s: %s, and the user has %s", p.State, p.Why, m.Balance(markettest.User))
	}
}

// A voucher is asked for and drawn by itself; a bank that is away for a moment is asked again.
func TestABuyerOfAllOfASmallSite(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, spread(1))
	m.Kill(markettest.Bank, 5*time.Second)
	m.Buy("p", 1, message.Options{})
	conclude(t, m)
	if p := m.Purchases()["p"]; !p.Settled {
		t.Fatalf("%s: %s", p.State, p.Why)
	}
}

func TestABundleThatCannotBePaid(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	cfg := spread(1)
	cfg.Credit, cfg.Site = protocol.Credit, trusting
	m := markettest.New(t, cast, cfg)
	m.Buy("p", 2, message.Options{})
	conclude(t, m)
	if p := m.Purchases()["p"]; p.State != user.StateVoid || m.Balance(markettest.User) != protocol.Credit {
		t.Fatalf("%s, and the user has %s", p.State, m.Balance(markettest.User))
	}
}

// A user that leaves for good at any of its Outputs: every hold is over at
// hold-until, every doubt with the bank's answer, and nobody waits for the user.
func TestAUserThatAbandons(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	_, outputs := rehearse(t, cast, 2)
	for output := outputs[markettest.User][0]; output <= outputs[markettest.User][1]; output++ {
		for point := range points {
			cfg := spread(1)
			cfg.Restart = 365 * 24 * time.Hour
			m := markettest.New(t, cast, cfg)
			m.Crash = func(b sim.Boundary) sim.Point {
				if b.Host.Name == markettest.User && b.Output == output {
					return point
				}
				return sim.Survives
			}
			m.Buy("p", 2, message.Options{})
			m.Run(protocol.DefaultHold + protocol.RetryMost + 15*time.Second)
			states := map[string]bool{}
			for i := range 2 {
				lines := m.Reservations(markettest.Seller(i + 1))
				sold := 0
				for _, l := range lines {
					states[l.State] = true
					if l.State == "sold" {
						sold++
					}
				}
				if n := len(m.Batch(markettest.Seller(i + 1)).Slots); n != sold {
					t.Errorf("output %d %s: %d reservations in the batch system, %d sold", output, points[point], n, sold)
				}
			}
			if states["held"] || states["reserving"] || states["countersigned"] || states["sold"] && states["freed"] {
				t.Errorf("output %d %s: units are %v", output, points[point], states)
			}
		}
	}
}

// Everything that was ever said, said again: by who said it, to whom it was
// said; to everybody else; and by a stranger. After a settled purchase, a
// cancelled unit, a void one, and restarts of everybody, nothing changes.
func TestReplays(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	m := markettest.New(t, cast, spread(1))
	var said []markettest.Packet
	m.Fate = func(p markettest.Packet) markettest.Fate {
		said = append(said, p)
		return markettest.Fate{}
	}
	m.Kill(markettest.Seller(1), time.Millisecond) // its first presence is said again
	m.Buy("p", 2, message.Options{})
	m.Run(10 * time.Second)
	m.Tell(message.CancelPurchase{ID: "p", Unit: 0, Row: m.Store(markettest.User)[user.TablePurchases]["p"]})
	m.Run(10 * time.Second)
	before := m.Purchases()["p"]
	if before.Units[0].State != user.StateCancelled || before.Units[1].State != user.StateSettled {
		t.Fatalf("before: %+v", before)
	}
	money := map[string]protocol.Credits{}
	parties := []string{markettest.User, markettest.Bank, markettest.Seller(1), markettest.Seller(2)}
	lines := func() string {
		return fmt.Sprint(m.Reservations(parties[2]), m.Reservations(parties[3]), m.Batch(parties[2]).Slots, m.Batch(parties[3]).Slots)
	}
	for _, p := range parties {
		money[p] = m.Balance(p)
	}
	reservations := lines()
	record := slices.Clone(said) // without what is said in answer to it
	for _, restarted := range []bool{false, true} {
		if restarted {
			for _, p := range parties {
				m.Kill(p, time.Second)
			}
			m.Run(2 * time.Second)
		}
		for _, p := range record {
			m.InjectBytes(p.From, p.To, p.Bytes)
			m.InjectBytes(markettest.Stranger, p.To, p.Bytes)
			for _, to := range parties {
				if to != p.To && to != p.From {
					m.InjectBytes(p.From, to, p.Bytes)
				}
			}
		}
		m.Run(10 * time.Minute)
		for _, p := range parties {
			if got := m.Balance(p); got != money[p] {
				t.Errorf("restarted %v: %s has %s, had %s", restarted, p, got, money[p])
			}
		}
		if got := lines(); got != reservations {
			t.Errorf("restarted %v: reservations are\n%s\nwere\n%s", restarted, got, reservations)
		}
		if got := m.Purchases()["p"]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", before) {
			t.Errorf("restarted %v: the purchase is %+v, was %+v", restarted, got, before)
		}
	}
}

// Offers for what nobody asked, or at prices that are none, neither win nor keep
// the honest from winning; nor does a flood of them.
func TestOddOffers(t *testing.T) {
	const units = 12
	cast := markettest.NewCast(t, 3) // the first is honest
	slot := protocol.Slot{Start: markettest.Dawn.Add(2 * time.Hour), End: markettest.Dawn.Add(4 * time.Hour), Cores: markettest.UnitCores}
	item := func(unit int, price, cost protocol.Credits) protocol.Item {
		return protocol.Item{Unit: unit, Slot: slot, Price: price, Cost: cost}
	}
	offer := func(id int, cost protocol.Credits, items ...protocol.Item) protocol.Offer {
		return protocol.Offer{ID: fmt.Sprint(id), Items: items, Cost: cost, ValidUntil: markettest.Dawn.Add(time.Hour)}
	}
	var flood []protocol.Offer
	for mask := 1; len(flood) < 2*protocol.MaxOffers; mask++ {
		var items []protocol.Item
		for u := range units {
			if mask>>u&1 != 0 {
				items = append(items, item(u, 60*protocol.Credit, 16*60*protocol.Credit))
			}
		}
		if len(items) > 1 {
			flood = append(flood, offer(mask, protocol.Credits(len(items))*16*60*protocol.Credit, items...))
		}
	}
	for name, offers := range map[string][]protocol.Offer{
		"a unit that nobody asked": {offer(1, 16*protocol.Credit, item(units, protocol.Credit, 16*protocol.Credit))},
		"far too much":             {offer(1, 16<<50, item(0, 1<<50, 16<<50))},
		"for nothing":              {offer(1, 1, item(0, 1, 1))},
		"bundles of every kind":    flood,
	} {
		t.Run(name, func(t *testing.T) {
			m := markettest.New(t, cast, markettest.Config{Seed: 1})
			m.Fate = func(p markettest.Packet) markettest.Fate {
				call, ok := p.Message.Body.(message.CallForProposals)
				if !ok || p.To == markettest.Seller(1) {
					return markettest.Fate{}
				}
				for half := range 2 {
					list := slices.Clone(offers[:min(len(offers), protocol.MaxOffers)])
					if p.To == markettest.Seller(3) { // the two say different things, if they have so many
						list = slices.Clone(offers[len(offers)-len(list):])
					}
					for i := range list {
						list[i].ID = fmt.Sprint(half, "-", list[i].ID)
						list[i].Group = fmt.Sprint(half)
					}
					msg := protocol.Message{Performative: protocol.Propose, Receivers: []protocol.AgentID{cast.ID(markettest.User)}, Protocol: p.Message.Protocol,
						Conversation: p.Message.Conversation, Body: message.Proposal{Round: call.Round, Offers: list}}
					m.Inject(p.To, markettest.User, msg)
				}
				return markettest.Fate{Drop: true}
			}
			m.Buy("p", units, message.Options{})
			conclude(t, m)
			p := m.Purchases()["p"]
			if name == "for nothing" { // it may win, but must then deliver
				return
			}
			if !p.Settled {
				t.Fatalf("%s: %s", p.State, p.Why)
			}
			for _, u := range p.Units {
				if u.Resource != markettest.Seller(1) {
					t.Fatalf("bought from %s", u.Resource)
				}
			}
		})
	}
}

// A proposal that is cut anywhere is refused, and changes nothing. (Prices that
// are none cannot even be sealed; the codec's tests send them.)
func TestCutBytes(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, markettest.Config{Seed: 1})
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, ok := p.Message.Body.(message.Proposal); ok {
			for cut := range p.Bytes {
				m.InjectBytes(p.From, p.To, p.Bytes[:cut])
			}
		}
		return markettest.Fate{}
	}
	m.Buy("p", 1, message.Options{})
	conclude(t, m)
	if !m.Purchases()["p"].Settled || len(m.Refused) == 0 {
		t.Fatalf("%s, %d refused", m.Purchases()["p"].State, len(m.Refused))
	}
}

// A buyer names a bank whose clock is off, and does not bid again. Sellers ask for a voucher of who may
// not hold as much without one.
func TestABankWhoseClockIsOffIsNamed(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	for _, x := range []struct {
		off     time.Duration
		vouched bool
		want    string
	}{
		{10 * time.Minute, false, "the bank's clock is at least 10m0s ahead of this machine's, which voids every purchase: "},
		{10 * time.Minute, true, "the clocks of the bank and this machine are far apart: "},
		{-3 * time.Hour, true, "the clocks of the bank and this machine are far apart: "},
	} {
		cfg := spread(1)
		cfg.Skew = map[string]time.Duration{markettest.Bank: x.off}
		cfg.Site = func(_ string, c *resource.Config) {
			if !x.vouched {
				c.BuyerCoreSeconds = 1e6
			}
		}
		m := markettest.New(t, cast, cfg)
		m.Buy("p", 1, message.Options{})
		m.Run(bound)
		p := m.Purchases()["p"]
		if cmp.Or(p.Void, p.Refused) != protocol.CodeClock || again.Lost(p) || !strings.HasPrefix(p.Why, x.want) {
			t.Errorf("%s, vouched for: %t: %s (%s%s) %s", x.off, x.vouched, p.State, p.Void, p.Refused, p.Why)
		}
	}
}

// Whosever clock is off by ten minutes, either way: what is bought is bought
// whole, or not at all, and everything ends.
func TestClocksThatAreOff(t *testing.T) {
	cast := markettest.NewCast(t, 3)
	for _, party := range []string{markettest.User, markettest.Bank, markettest.Seller(1), markettest.Seller(2)} {
		for _, skew := range []time.Duration{-10 * time.Minute, -protocol.ClockSkew, protocol.ClockSkew, 10 * time.Minute} {
			cfg := spread(1)
			cfg.Skew = map[string]time.Duration{party: skew}
			m := markettest.New(t, cast, cfg)
			m.Buy("p", 3, message.Options{})
			m.Run(11 * time.Minute)
			m.Run(bound)
			if err := m.Check(); err != nil {
				t.Errorf("%s off by %s: %v", party, skew, err)
			}
			p := m.Purchases()["p"]
			t.Logf("%s off by %s: %s %s", party, skew, p.State, p.Why)
			if within := skew >= -protocol.ClockSkew && skew <= protocol.ClockSkew; within && !p.Settled {
				t.Errorf("%s off by %s, which is agreed to be honest: %s %s", party, skew, p.State, p.Why)
			}
		}
	}
}

package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// open opens a market in which every seller has cores for one unit.
func open(t *testing.T, sellers int, site func(string, *resource.Config)) (*markettest.Market, *markettest.Cast) {
	cast := markettest.NewCast(t, sellers)
	return markettest.New(t, cast, markettest.Config{Seed: 1, Cores: markettest.UnitCores, Site: site}), cast
}

// trusting has sellers hold any amount without a voucher.
func trusting(_ string, cfg *resource.Config) { cfg.BuyerCoreSeconds = 1 << 40 }

// prices gives sellers least prices of their own; all begin at 60.
func prices(of map[string]protocol.Credits) func(string, *resource.Config) {
	return func(name string, cfg *resource.Config) {
		if p := of[name]; p > 0 {
			cfg.Price.Start, cfg.Price.Min = 60*protocol.Credit, p*protocol.Credit
		}
	}
}

// last is what the owner was told last.
func last(m *markettest.Market) message.Progress { return m.Progress[len(m.Progress)-1] }

func settle(t *testing.T, m *markettest.Market, units int, o message.Options) message.Purchase {
	t.Helper()
	m.Buy("p", units, o)
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	m.Run(time.Second)
	p := m.Purchases()["p"]
	if p.State != user.StateSettled {
		t.Fatalf("%s: %s", p.State, p.Why)
	}
	return p
}

func TestNothingIsBoughtAboveTheMostThatMayBeSpent(t *testing.T) {
	m, _ := open(t, 2, nil)
	m.Buy("p", 2, message.Options{MaxCost: 2 * 8 * 2 * 20 * protocol.Credit / 2})
	m.RunUntil(time.Minute, func() bool { return last(m).Purchase.State == user.StateApproval })
	if p := last(m).Purchase; p.State != user.StateApproval || len(p.Violations) != 1 {
		t.Fatalf("%s, violations %q", p.State, p.Violations)
	}
	m.Run(user.ApprovalTime + time.Second)
	if p := m.Purchases()["p"]; p.State != user.StateFailed || p.Why != user.WhyUnmet {
		t.Fatalf("%s: %s", p.State, p.Why)
	}
}

func TestAnOwnerWhoSaysNoBuysNothing(t *testing.T) {
	m, _ := open(t, 1, nil)
	m.Buy("p", 1, message.Options{Approve: true})
	m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" })
	m.Tell(message.Approval{ID: "other", Yes: true})
	m.Tell(message.Approval{ID: "p"})
	if p := last(m); !p.Done || p.Purchase.State != user.StateFailed || p.Purchase.Why != "not approved" {
		t.Fatalf("%s: %s", p.Purchase.State, p.Purchase.Why)
	}
	m.Tell(message.Approval{ID: "p", Yes: true})
	m.Run(time.Minute)
	if n := len(m.Reservations(markettest.Seller(1))); n > 0 {
		t.Fatalf("%d reservations", n)
	}
}

// A purchase that waits for its owner waits ApprovalTime and no longer, whatever
// arrives meanwhile; a yes buys.
func TestApproval(t *testing.T) {
	for name, wait := range map[string]time.Duration{"in time": user.ApprovalTime - time.Second, "too late": user.ApprovalTime + time.Second} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, 1, nil)
			m.Buy("p", 1, message.Options{Approve: true})
			m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" })
			m.Run(wait)
			m.Tell(message.Approval{ID: "p", Yes: true})
			m.Run(time.Minute)
			if got := m.Purchases()["p"].Settled; got != (name == "in time") {
				t.Fatalf("settled is %v", got)
			}
		})
	}
}

// When a vote for an approved set is refused, no worse set takes its place.
func TestNoWorseSetThanTheApprovedIsBought(t *testing.T) {
	for name, dear := range map[string]protocol.Credits{"as good": 20, "dearer": 60} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, 2, prices(map[string]protocol.Credits{"s01": 20, "s02": dear}))
			m.Buy("p", 1, message.Options{Approve: true, Rounds: 5})
			m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" })
			chosen := last(m).Purchase.Units[0].Resource
			m.Fate = func(p markettest.Packet) markettest.Fate {
				_, asked := p.Message.Body.(message.Acceptance)
				return markettest.Fate{Drop: asked && p.To == chosen, Tell: true}
			}
			m.Tell(message.Approval{ID: "p", Yes: true})
			m.Run(time.Minute)
			if got := m.Purchases()["p"].Settled; got != (name == "as good") {
				t.Fatalf("settled is %v for %s", got, m.Purchases()["p"].Total)
			}
		})
	}
}

func TestAStartBeyondTheLongestWaitIsNotBought(t *testing.T) {
	m, _ := open(t, 1, nil)
	blocked := protocol.Slot{Start: markettest.Dawn.Add(time.Hour), End: markettest.Dawn.Add(2*time.Hour + 20*time.Minute), Cores: markettest.UnitCores}
	m.Batch(markettest.Seller(1)).Slots["another's"] = blocked
	m.Kill(markettest.Seller(1), time.Second) // it learns of it when it starts
	m.Run(2 * time.Second)
	m.Buy("p", 1, message.Options{MaxWait: 10 * time.Minute})
	m.Run(time.Minute)
	if p := last(m).Purchase; p.State == user.StateSettled {
		t.Fatalf("bought from %s", p.Units[0].Start)
	}
}

// A bank says which currencies it keeps: in another one nothing is asked for, and of
// several that the owner allows one that is kept is taken.
func TestNothingIsAskedForInACurrencyThatItsBankDoesNotKeep(t *testing.T) {
	m, cast := open(t, 1, nil)
	m.Run(time.Minute) // the bank is heard
	kept, other := cast.Terms(), protocol.Terms{Bank: cast.Terms().Bank, Currency: "EUR"}
	m.Buy("none", 1, message.Options{Terms: []protocol.Terms{other}})
	if p := last(m); !p.Done || p.Purchase.State != user.StateFailed || p.Purchase.Why != "bank settles CRD, not EUR" {
		t.Fatalf("%s: %s", p.Purchase.State, p.Purchase.Why)
	}
	if p := settle(t, m, 1, message.Options{Terms: []protocol.Terms{other, kept}}); p.Currency != kept.Currency {
		t.Fatalf("paid in %s", p.Currency)
	}
}

// A quote asks the whole market, and leaves no record of it. Sellers forget it in time, without
// a message that says so.
func TestAQuoteLeavesNothingBehind(t *testing.T) {
	m, _ := open(t, 2, nil)
	m.Buy(protocol.QuotePrefix+"q", 2, message.Options{QuoteOnly: true})
	m.Run(2 * time.Minute)
	if p := last(m); !p.Done || p.Purchase.State != user.StateQuoted || len(p.Purchase.Units) != 2 || p.Purchase.Total <= 0 {
		t.Fatalf("quoted: %+v", p.Purchase)
	}
	for table, rows := range m.Store(markettest.User) {
		if len(rows) > 0 {
			t.Errorf("table %s has %d records", table, len(rows))
		}
	}
	for i := range 2 {
		if n := len(m.Reservations(markettest.Seller(i + 1))); n > 0 {
			t.Errorf("%d reservations", n)
		}
		for _, s := range m.Role(markettest.Seller(i + 1)).(*resource.Role).Sizes() {
			if s.Of == "auctions" && s.N != 1 {
				t.Errorf("%d auctions remembered, want the quote", s.N)
			}
		}
	}
}

// The same order again tells how it stands; when it is over, it is not bought a
// second time, before and after a restart.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	m, _ := open(t, 3, nil)
	m.Buy("p", 1, message.Options{})
	m.Buy("p", 1, message.Options{})
	settleOnly := func() {
		t.Helper()
		m.Run(time.Minute)
		if n := m.Balance(markettest.User); n != 1_000_000*protocol.Credit-m.Purchases()["p"].Total {
			t.Fatalf("the user has %s after paying %s", n, m.Purchases()["p"].Total)
		}
		if !m.Purchases()["p"].Settled {
			t.Fatalf("the record is %s", m.Purchases()["p"].State)
		}
	}
	settleOnly()
	m.Buy("p", 1, message.Options{})
	if p := last(m); !p.Done || p.Purchase.Why == "" {
		t.Fatalf("told %+v", p)
	}
	settleOnly()
	m.Kill(markettest.User, time.Millisecond)
	m.Run(2 * time.Minute) // it hears of the sellers again
	m.Buy("p", 1, message.Options{})
	settleOnly()
}

func TestTwoPurchasesAtOnce(t *testing.T) {
	m, _ := open(t, 4, nil)
	m.Buy("p", 2, message.Options{})
	m.Buy("q", 2, message.Options{})
	m.Run(2 * time.Minute)
	for _, id := range []string{"p", "q"} {
		if p := m.Purchases()[id]; p.State != user.StateSettled {
			t.Errorf("%s is %s: %s", id, p.State, p.Why)
		}
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
}

// stopped orders a purchase and cancels it as soon as it is in a state.
func stopped(t *testing.T, state string) (*markettest.Market, message.Purchase) {
	m, _ := open(t, 2, nil)
	m.Fate = func(p markettest.Packet) markettest.Fate { // so that the bank hears of void before it has all copies
		if p.Message.Body.Kind() == (message.Settlement{}).Kind() {
			return markettest.Fate{Delay: time.Second}
		}
		return markettest.Fate{}
	}
	m.Buy("p", 2, message.Options{Approve: state == user.StateApproval})
	if !m.RunUntil(time.Minute, func() bool { return last(m).Purchase.State == state }) {
		t.Fatalf("never %s", state)
	}
	m.Tell(message.CancelPurchase{ID: "p", Unit: -1})
	m.Run(3 * time.Minute)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return m, m.Purchases()["p"]
}

func TestCancelAPurchaseThatGoesOn(t *testing.T) {
	for state, want := range map[string]string{
		user.StateBidding: user.StateCancelled, user.StateApproval: user.StateCancelled, user.StateVoting: user.StateCancelled,
		user.StateConfirming: user.StateVoid, user.StateDeciding: user.StateVoid,
	} {
		t.Run(state, func(t *testing.T) {
			_, p := stopped(t, state)
			if p.State != want || p.Why == "" {
				t.Fatalf("%s: %s", p.State, p.Why)
			}
		})
	}
}

// A crash in every state: before the bundle is signed nothing was bought, after
// it the same bundle goes on.
func TestRestoreEveryState(t *testing.T) {
	for state, want := range map[string]string{
		user.StateBidding: user.StateInterrupted, user.StateApproval: user.StateInterrupted, user.StateVoting: user.StateInterrupted,
		user.StateConfirming: user.StateSettled, user.StateDeciding: user.StateSettled, user.StateSettled: user.StateSettled,
	} {
		t.Run(state, func(t *testing.T) {
			m, _ := open(t, 2, nil)
			m.Buy("p", 2, message.Options{Approve: state == user.StateApproval})
			m.RunUntil(time.Minute, func() bool { return last(m).Purchase.State == state && len(m.Purchases()) > 0 })
			m.Kill(markettest.User, time.Second)
			m.Run(3 * time.Minute)
			if p := m.Purchases()["p"]; p.State != want {
				t.Fatalf("%s: %s", p.State, p.Why)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A vote in a conversation that is over is cancelled at once, not at the end of
// its hold.
func TestALateVoteIsCancelled(t *testing.T) {
	m, _ := open(t, 1, nil)
	m.Fate = func(p markettest.Packet) markettest.Fate {
		if _, ok := p.Message.Body.(message.Vote); ok {
			return markettest.Fate{Delay: protocol.VoteTimeout + time.Second}
		}
		return markettest.Fate{}
	}
	m.Buy("p", 1, message.Options{})
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	m.Run(2 * time.Second)
	if n := len(m.Batch(markettest.Seller(1)).Slots); n != 0 {
		t.Fatalf("%d reservations are held for nothing", n)
	}
}

// A presence with an older counter, or the same one again, changes nothing; who
// has left stays away, whatever is replayed.
func TestPresencesAreTakenInOrder(t *testing.T) {
	hears := newListener(t)
	for i, step := range []struct {
		counter uint64
		cores   int
		ttl     time.Duration
		want    int // cores; 0: not known
	}{
		{5, 10, time.Minute, 10}, {4, 20, time.Minute, 10}, {5, 20, time.Minute, 10}, {6, 30, time.Minute, 30},
		{7, 30, 0, 0}, {6, 30, time.Minute, 0}, {7, 30, time.Minute, 0}, {8, 40, time.Minute, 40},
	} {
		hears.presence(1, step.counter, step.cores, step.ttl)
		got := 0
		for _, k := range hears.known() {
			got = k.Presence.Properties.Cores
		}
		if got != step.want {
			t.Fatalf("step %d: known with %d cores, want %d", i+1, got, step.want)
		}
	}
	hears.presence(1, 9, 40, 0)
	if hears.presence(1, 8, 40, time.Minute); len(hears.known()) != 0 {
		t.Fatal("a replayed presence brings a seller back")
	}
}

// Sellers that fall silent are gone while others are heard. If all are silent, or most of
// many, the user hears little, and they count as known for an hour, but not those that have
// said that they leave.
func TestSilentSellersAreKnownIfMostAreSilent(t *testing.T) {
	few, many := newListener(t), newListener(t)
	for n := 1; n <= 4; n++ {
		few.presence(n, 1, 10, time.Minute)
	}
	few.presence(3, 2, 10, 2*time.Minute)
	few.presence(4, 2, 10, 0)
	for n := 1; n <= 9; n++ {
		many.presence(n, 1, 10, time.Duration(1+n/9)*time.Minute)
	}
	for _, step := range []struct {
		after     time.Duration
		few, many int
	}{{0, 3, 9}, {time.Minute, 1, 9}, {2 * time.Minute, 3, 9}, {time.Hour + time.Minute, 1, 1}, {time.Hour + 2*time.Minute, 0, 0}} {
		few.now, many.now = markettest.Dawn.Add(step.after), markettest.Dawn.Add(step.after)
		if a, b := len(few.known()), len(many.known()); a != step.few || b != step.many {
			t.Errorf("after %s: %d and %d sellers known, want %d and %d", step.after, a, b, step.few, step.many)
		}
	}
}

// listener is a user that hears presences.
type listener struct {
	cast *markettest.Cast
	role *user.Role
	now  time.Time
}

func newListener(t *testing.T) *listener {
	cast := markettest.NewCast(t, 9)
	r, _, err := user.New(user.Config{Credential: cast.Credential(markettest.User), Trust: cast.Trust}, markettest.Store{}, markettest.Dawn)
	if err != nil {
		t.Fatal(err)
	}
	return &listener{cast, r, markettest.Dawn}
}

func (l *listener) presence(seller int, counter uint64, cores int, ttl time.Duration) {
	l.role.Receive(l.now, protocol.Message{Performative: protocol.Inform, Sender: l.cast.ID(markettest.Seller(seller)),
		Body: message.Presence{Agent: protocol.KindResource, Properties: protocol.Properties{Cores: cores}, TTL: ttl, Counter: counter}})
}

func (l *listener) known() []user.Known { return l.role.Known(l.now, protocol.KindResource) }

// The record of a signed bundle is never without that of its purchase, however
// the first alarm is late.
func TestASignedBundleFindsItsPurchase(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	m := markettest.New(t, cast, markettest.Config{Seed: 1, Late: 500 * time.Millisecond})
	store := m.Store(markettest.User)
	m.Crash = func(b sim.Boundary) sim.Point {
		for _, r := range b.Out.Save {
			if r.Table == reserve.TableBundles && store[user.TablePurchases]["p"] == nil {
				for _, r := range b.Out.Save {
					if r.Table == user.TablePurchases {
						return sim.Survives
					}
				}
				t.Error("a bundle is saved before its purchase")
			}
		}
		return sim.Survives
	}
	settle(t, m, 1, message.Options{})
}

// A receipt of another bank convinces nobody.
func TestAReceiptOfAnotherBank(t *testing.T) {
	m, cast := open(t, 1, trusting)
	m.Kill(markettest.Bank, time.Hour)
	m.Buy("p", 1, message.Options{})
	m.Run(5 * time.Second)
	p := last(m).Purchase
	r := protocol.Receipt{Version: contract.ReceiptVersion, Bank: cast.ID(markettest.Stranger), Contract: p.Contract, Outcome: protocol.OutcomeSettled,
		Entry: 1, Time: m.Now(), User: cast.ID(markettest.User), Total: p.Total, Currency: "CRD"}
	for _, to := range []string{markettest.User, markettest.Seller(1)} {
		m.Inject(markettest.Stranger, to, protocol.Message{Performative: protocol.Inform, Receivers: []protocol.AgentID{cast.ID(to)},
			Protocol: protocol.ProtocolCommit, Conversation: "p",
			Body: message.Decision{Contract: p.Contract, Outcome: r.Outcome, Receipt: &message.SignedReceipt{Receipt: r}}})
	}
	m.Run(time.Second)
	if s := last(m).Purchase.State; s != user.StateDeciding {
		t.Fatalf("the user believes it: %s", s)
	}
	if s := m.Reservations(markettest.Seller(1))[0].State; s != "countersigned" {
		t.Fatalf("the seller believes it: %s", s)
	}
}

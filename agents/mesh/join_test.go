package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Known0 is the first listen address without the peer ID.
func (a *agent) Known0() string {
	s := a.Addresses()[0]
	for i := range s {
		if len(s)-i > 5 && s[i:i+5] == "/p2p/" {
			return s[:i]
		}
	}
	return s
}

// awaitPresences waits until the role has heard of all.
func (a *agent) awaitPresences(all map[protocol.AgentID]bool) {
	a.t.Helper()
	missing := map[protocol.AgentID]bool{}
	for id := range all {
		if id != a.Self() {
			missing[id] = true
		}
	}
	for len(missing) > 0 {
		a.await(fmt.Sprintf("presences of %d agents", len(missing)), func(m protocol.Message) bool {
			if _, ok := m.Body.(message.Presence); ok {
				delete(missing, m.Sender)
			}
			return len(missing) == 0
		})
	}
}

func TestAUserThatJoinsKnowsTheWholeMarketAtOnce(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	all := map[protocol.AgentID]bool{bank.Self(): true}
	var sellers []*agent
	for i := range 20 {
		s := m.joined(fmt.Sprintf("seller%d", i), bank)
		s.Send(presence(protocol.KindResource, 1))
		sellers = append(sellers, s)
		all[s.Self()] = true
	}
	for _, a := range append(sellers, bank) {
		a.awaitPresences(all)
	}
	start := time.Now()
	user := m.joined("user", bank)
	user.awaitPresences(all)
	t.Logf("a user knew 21 agents after %s", time.Since(start)) // nobody says anything twice here: it was told
	for _, k := range user.Known() {
		if len(k.Addresses) == 0 || k.Kind == 0 || k.Until.IsZero() {
			t.Errorf("known without address, kind or end: %+v", k)
		}
	}
}

func TestAFirstPresenceReachesThoseAlreadyMet(t *testing.T) {
	a, b := newMarket(t).pair(nil)
	a.Send(presence(protocol.KindResource, 1))
	b.awaitPresences(map[protocol.AgentID]bool{a.Self(): true})
}

func TestHeartbeatsComeByGossip(t *testing.T) {
	a, b := newMarket(t).pair(nil)
	for n := uint64(1); ; n++ {
		a.Send(presence(protocol.KindResource, n))
		select {
		case m := <-b.inbox:
			if p := m.Body.(message.Presence); p.Counter > 1 { // the first was told directly
				return
			}
		case <-time.After(100 * time.Millisecond): // until the topic's mesh stands
		}
		if n == 200 {
			t.Fatal("no heartbeat came by gossip")
		}
	}
}

func TestLeavingIsAnnounced(t *testing.T) {
	a, b := newMarket(t).pair(nil)
	a.Send(presence(protocol.KindResource, 1))
	b.awaitPresences(map[protocol.AgentID]bool{a.Self(): true})
	last := presence(protocol.KindResource, 2)
	p := last.Body.(message.Presence)
	p.TTL = 0
	last.Body = p
	a.Send(last)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.await("the last presence", func(m protocol.Message) bool {
		p, ok := m.Body.(message.Presence)
		return ok && p.TTL == 0 && m.Sender == a.Self()
	})
}

func TestACallToManyReachesSellersByGossip(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	var sellers []*agent
	all := map[protocol.AgentID]bool{}
	for i := range 5 {
		s := m.start(fmt.Sprintf("seller%d", i), func(c *mesh.Config) {
			hearsCalls(c)
			c.Bootstrap = bank.Addresses()
		})
		s.Send(presence(protocol.KindResource, 1))
		sellers, all[s.Self()] = append(sellers, s), true
	}
	user := m.joined("user", bank)
	user.awaitPresences(all)
	call := callForProposals()
	user.Send(call)
	for _, s := range sellers {
		got := s.await("the call", func(m protocol.Message) bool { return m.Performative == protocol.CFP })
		if got.Sender != user.Self() || got.Conversation != call.Conversation {
			t.Errorf("got %+v", got)
		}
		s.Send(query(7, got.Sender)) // and the answer finds its way
	}
	for range sellers {
		user.awaitQuery(7)
	}
}

func TestAnAgentJoinsWhenItsOnlyAddressComesUpLater(t *testing.T) {
	m := newMarket(t)
	inbox := make(chan protocol.Message, 1024)
	cfg := m.config("bank", inbox)
	cfg.Listen = kept(t)
	bank := m.listen(cfg, inbox)
	addrs := bank.Addresses()
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
	user := m.start("user", func(c *mesh.Config) { c.Bootstrap = addrs })
	bank = m.listen(cfg, inbox)
	user.awaitKnown(bank.Self())
}

func TestJoinedWaitsForTheMarketAndSaysWhyItCannot(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t.Run("joined", func(t *testing.T) {
		user := m.joined("user", bank)
		if err := user.Joined(ctx); err != nil {
			t.Fatal(err)
		}
		if !user.knows(bank.Self()) {
			t.Error("joined, but does not know the bank")
		}
	})
	t.Run("nothing to join", func(t *testing.T) {
		if err := bank.Joined(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		addrs := bank.Addresses()
		if err := bank.Close(); err != nil {
			t.Fatal(err)
		}
		user := m.start("late", func(c *mesh.Config) { c.Bootstrap = addrs })
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if err := user.Joined(ctx); !errors.Is(err, mesh.ErrNotThere) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnAgentMayBeItsOwnBootstrap(t *testing.T) {
	m := newMarket(t)
	inbox := make(chan protocol.Message, 1024)
	cfg := m.config("bank", inbox)
	cfg.Listen = kept(t)
	bank := m.listen(cfg, inbox)
	cfg.Bootstrap = bank.Addresses()
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
	m.listen(cfg, inbox)
}

// Thousands of users need not know each other.
func TestUsersAreNotIntroducedToUsers(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	silent := m.start("seller", func(c *mesh.Config) { // which has announced nothing yet
		hearsCalls(c)
		c.Bootstrap = bank.Addresses()
	})
	bank.awaitKnown(silent.Self())
	visits := func(c *mesh.Config) { c.Visitor, c.Bootstrap = true, bank.Addresses() }
	first := m.start("user1", visits)
	first.awaitKnown(silent.Self())
	second := m.start("user2", visits)
	second.awaitKnown(silent.Self())
	if err := second.Acquainted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second.knows(first.Self()) {
		t.Error("a user has met another one")
	}
}

// A bank that needs the room may close a visitor's connection, and does not get it back at once.
func TestAVisitorReturnsWhenItHasBusiness(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	seller := m.joined("seller", bank)
	visitor := m.start("visitor", func(c *mesh.Config) { c.Visitor, c.Bootstrap = true, bank.Addresses() })
	visitor.awaitKnown(seller.Self())
	if err := visitor.Acquainted(t.Context()); err != nil {
		t.Fatal(err)
	}
	hangUp := func(a *agent) {
		t.Helper()
		if err := mesh.HangUp(a.Mesh, visitor.Self()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the visitor has gone", func() bool { return a.Peers() == 1 })
	}
	hangUp(bank)
	for i := range 1000 {
		visitor.Send(query(i, seller.Self()))
		seller.awaitQuery(i)
	}
	if bank.Peers() != 1 {
		t.Error("the visitor has come back without a message")
	}
	visitor.Send(query(1000, bank.Self()))
	bank.awaitQuery(1000)
	hangUp(seller)
	hangUp(bank) // and now it is alone
	eventually(t, "the visitor is back", func() bool { return bank.Peers() == 2 })
}

// A seller does not call back a user that has left.
func TestSellersLetUsersGo(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	seller := m.joined("seller", bank)
	visitor := m.start("visitor", func(c *mesh.Config) { c.Visitor, c.Bootstrap = true, bank.Addresses() })
	seller.awaitKnown(bank.Self())
	seller.awaitKnown(visitor.Self())
	if err := visitor.Acquainted(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the seller has met the visitor", func() bool { return mesh.HasMet(seller.Mesh, visitor.Self()) })
	if err := mesh.HangUp(seller.Mesh, visitor.Self()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the user has gone", func() bool { return seller.Peers() == 1 })
	if _, err := mesh.Learn(t.Context(), seller.Mesh, bank.Self()); err != nil {
		t.Fatal(err)
	}
	if seller.Peers() != 1 {
		t.Error("the seller has called the user back")
	}
}

// Sellers have places for thousands of visitors, since each stays connected to few of them.
func TestAVisitorKeepsFewIdleConnections(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	var sellers []*agent
	for i := range 24 {
		sellers = append(sellers, m.joined(fmt.Sprint("seller", i), bank))
		bank.awaitKnown(sellers[i].Self())
	}
	var later atomic.Int64
	visitor := m.start("visitor", func(c *mesh.Config) {
		c.Visitor, c.Bootstrap = true, bank.Addresses()
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	for i, s := range sellers {
		visitor.awaitKnown(s.Self())
		if i < 2 {
			visitor.Send(query(i, s.Self()))
			s.awaitQuery(i)
		}
	}
	if err := visitor.Acquainted(t.Context()); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(time.Minute))
	eventually(t, "the visitor has left those that it does not use, nor gossips with", func() bool { return visitor.Peers() <= 16 })
	later.Store(0) // so it leaves no more
	for i, s := range sellers {
		if i < 2 && !visitor.knows(s.Self()) {
			t.Error("the visitor has left one that it uses")
		}
		visitor.Send(query(100+i, s.Self()))
		s.awaitQuery(100 + i)
	}
	if visitor.Peers() != 25 {
		t.Errorf("%d connections, want 25 that are in use", visitor.Peers())
	}
}

// A seller leaves some of many idle connections that it has opened, and none that others have.
func TestASellerKeepsFewIdleConnections(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	const others, callers = mesh.SellerMost + 6, 6
	var all []*agent
	sells := func(name string, by *agent) {
		a := m.start(name, func(c *mesh.Config) { c.Visitor, c.Bootstrap = true, by.Addresses() }) // they do not meet each other
		by.awaitKnown(a.Self())
		all = append(all, a)
	}
	for i := range others {
		sells(fmt.Sprint("other", i), bank)
	}
	for _, a := range all {
		a.Send(presence(protocol.KindResource, 1))
		bank.await("its presence", isPresenceOf(a.Self(), 1))
	}
	var later atomic.Int64
	seller := m.start("seller", func(c *mesh.Config) {
		hearsCalls(c)
		c.Bootstrap = bank.Addresses()
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	eventually(t, "the seller has met the others", func() bool { return seller.Peers() == 1+others })
	for i := range callers {
		sells(fmt.Sprint("caller", i), seller)
		all[others+i].Send(presence(protocol.KindResource, 1))
		seller.await("its presence", isPresenceOf(all[others+i].Self(), 1))
	}
	later.Store(int64(time.Minute))
	eventually(t, "the seller has closed some", func() bool { return seller.Peers() <= mesh.SellerMost })
	for i, a := range all {
		if i >= others && !seller.knows(a.Self()) {
			t.Errorf("the seller has closed the connection of %s", a.Self())
		}
		eventually(t, "a message arrives", func() bool { a.Send(query(i, seller.Self())); return seller.hears(i) }) // it may not know yet
	}
}

// A seller with enough connections meets nobody again whom it still hears.
func TestASellerSparesConnectionsToThoseItHears(t *testing.T) {
	m := newMarket(t)
	bank := m.start("bank", nil)
	bank.Send(presence(protocol.KindBank, 1))
	var later atomic.Int64
	seller := m.start("seller", func(c *mesh.Config) {
		hearsCalls(c)
		c.Bootstrap = bank.Addresses()
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	var other *agent
	const enough = mesh.SellerMost/2 + 1
	for i := range enough {
		other = m.joined(fmt.Sprint("other", i), bank)
		other.Send(presence(protocol.KindResource, 1))
		seller.awaitKnown(other.Self())
	}
	learns := func() {
		t.Helper()
		if unmet, err := mesh.Learn(t.Context(), seller.Mesh, bank.Self()); unmet > 0 || err != nil {
			t.Fatal(unmet, err)
		}
	}
	eventually(t, "the bank introduces all", func() bool { return bank.Peers() == enough+1 })
	seller.await("its presence", isPresenceOf(other.Self(), 1))
	seller.awaitKnown(bank.Self())
	other.awaitKnown(seller.Self())
	eventually(t, "both have met", func() bool { return mesh.HasMet(seller.Mesh, other.Self()) && mesh.HasMet(other.Mesh, seller.Self()) })
	if err := mesh.HangUp(seller.Mesh, other.Self()); err != nil {
		t.Fatal(err)
	}
	if learns(); seller.knows(other.Self()) {
		t.Error("the seller has met an agent again that it hears")
	}
	later.Store(int64(protocol.PresenceTTL))
	if learns(); !seller.knows(other.Self()) {
		t.Error("the seller has not met an agent again whose presence has lapsed")
	}
}

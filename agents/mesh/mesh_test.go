package mesh_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestMessagesOfOnePeerKeepTheirOrder(t *testing.T) {
	a, b := newMarket(t).pair(nil)
	const n = 500 // below QueueLength: none is refused
	for i := range n {
		a.Send(query(i, b.Self()))
	}
	next := 0
	for next < n {
		m := b.await("queries in order", func(m protocol.Message) bool { return m.Protocol == protocol.ProtocolRequest })
		if want := fmt.Sprintf("c-%d", next); m.Conversation != want {
			t.Fatalf("got %s, want %s", m.Conversation, want)
		}
		if m.Sender != a.Self() {
			t.Fatalf("sender %s, want %s", m.Sender, a.Self())
		}
		next++
	}
}

func TestAMessageReachesSeveralReceivers(t *testing.T) {
	m := newMarket(t)
	hub := m.start("hub", nil)
	var all []*agent
	var ids []protocol.AgentID
	for i := range 3 {
		a := m.joined(fmt.Sprintf("seller%d", i), hub)
		hub.awaitKnown(a.Self())
		all, ids = append(all, a), append(ids, a.Self())
	}
	hub.Send(query(1, ids...))
	for _, a := range all {
		a.awaitQuery(1)
	}
	if got := hub.Counters().MessagesOut; got != 3 {
		t.Errorf("%d messages out, want 3", got)
	}
}

func TestUndeliverableMessagesComeBackAtOnce(t *testing.T) {
	m := newMarket(t)
	stranger := m.credential("stranger").ID
	a, b := m.pair(nil)
	t.Run("no address is known", func(t *testing.T) {
		a.Send(query(1, stranger))
		got := a.awaitUndeliverable(1)
		if u, ok := got.Body.(message.Undeliverable); !ok || u.To != stranger || got.InReplyTo != "r-1" || got.Performative != protocol.Failure {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the dial is refused", func(t *testing.T) {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "bob is gone", func() bool { return !a.knows(b.Self()) })
		a.Send(query(2, b.Self()))
		a.awaitUndeliverable(2)
	})
	t.Run("the mesh is closed", func(t *testing.T) {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		before := a.Counters().Undelivered
		a.Send(query(3, b.Self()))
		if got := a.Counters().Undelivered; got != before+1 {
			t.Errorf("%d undelivered, want %d", got, before+1)
		}
	})
}

func TestAFullQueueRefusesAndTheOthersGoOn(t *testing.T) {
	m := newMarket(t)
	stuck := make(chan struct{})
	defer close(stuck)
	a := m.start("alice", nil)
	slow := m.start("slow", func(c *mesh.Config) {
		c.Bootstrap = a.Addresses()
		c.Deliver = func(protocol.Message) error { <-stuck; return nil }
	})
	quick := m.joined("quick", a)
	a.awaitKnown(slow.Self())
	a.awaitKnown(quick.Self())
	big := query(0, slow.Self())
	big.Body = message.Refused(protocol.CodeBusy, string(make([]byte, 500)))
	big.Performative = protocol.Refuse
	failed := false
	for i := 0; !failed && i < 100*mesh.QueueLength; i++ {
		a.Send(big)
		failed = a.Counters().Undelivered > 0
	}
	a.awaitUndeliverable(0)
	a.Send(query(1, quick.Self()))
	quick.awaitQuery(1)
}

func TestAnAgentThatRestartsAtItsAddressIsReachedAgain(t *testing.T) {
	m := newMarket(t)
	inbox := make(chan protocol.Message, 1024)
	cfg := m.config("bank", inbox)
	cfg.Listen = kept(t)
	bank := m.listen(cfg, inbox)
	user := m.joined("user", bank)
	user.awaitKnown(bank.Self())
	user.Send(query(1, bank.Self()))
	bank.awaitQuery(1)
	for i := 2; i < 5; i++ {
		if err := bank.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the bank is gone", func() bool { return !user.knows(bank.Self()) })
		bank = m.listen(cfg, inbox)
		user.awaitKnown(bank.Self())
		user.Send(query(i, bank.Self()))
		bank.awaitQuery(i)
	}
}

func TestAfterALostStreamMessagesArriveOverANewOne(t *testing.T) {
	m := newMarket(t)
	inbox := make(chan protocol.Message, 1024)
	cfg := m.config("bank", inbox)
	cfg.Listen = kept(t)
	bank := m.listen(cfg, inbox)
	user := m.start("user", func(c *mesh.Config) { c.Bootstrap = bank.Addresses() })
	user.awaitKnown(bank.Self())
	user.Send(query(1, bank.Self()))
	bank.awaitQuery(1)
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
	bank = m.listen(cfg, inbox)
	// The user may not have noticed yet: what it writes then may be lost unreported,
	// and its next tries may be refused. As a role does, it says it again.
	again := time.NewTicker(answered)
	defer again.Stop()
	limit := time.After(patience)
	for n := 2; ; n++ {
		user.Send(query(n, bank.Self()))
		select {
		case got := <-inbox:
			if got.Protocol == protocol.ProtocolRequest {
				return
			}
		case got := <-user.inbox:
			if _, ok := got.Body.(message.Undeliverable); !ok {
				t.Fatalf("got %+v", got)
			}
		case <-again.C:
		case <-limit:
			t.Fatal("nothing arrives any more")
		}
	}
}

func TestAnAddressInUseIsSaidSo(t *testing.T) {
	m := newMarket(t)
	a := m.start("alice", nil)
	cfg := m.config("bob", make(chan protocol.Message, 1))
	cfg.Listen = []string{a.Known0()}
	if _, err := mesh.Listen(cfg); !errors.Is(err, mesh.ErrAddressInUse) {
		t.Errorf("got %v, want ErrAddressInUse", err)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	m := newMarket(t)
	good := m.config("alice", nil)
	for _, c := range []struct {
		name   string
		change func(*mesh.Config)
		want   error
	}{
		{"no credential", func(c *mesh.Config) { c.Credential = nil }, nil},
		{"no trust", func(c *mesh.Config) { c.Trust = nil }, nil},
		{"no codec", func(c *mesh.Config) { c.Codec = nil }, nil},
		{"nobody to deliver to", func(c *mesh.Config) { c.Deliver = nil }, nil},
		{"a listen address that is none", func(c *mesh.Config) { c.Listen = []string{"localhost:4001"} }, nil},
		{"a bootstrap address without peer ID", func(c *mesh.Config) { c.Bootstrap = []string{"/ip4/127.0.0.1/tcp/4001"} }, mesh.ErrNoPeerID},
		{"too many bootstrap addresses", func(c *mesh.Config) { c.Bootstrap = make([]string, 1000) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			err := cfg.Validate()
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want an error (%v)", err, c.want)
			}
		})
	}
	if err := good.Validate(); err != nil {
		t.Errorf("good config: %v", err)
	}
}

// An agent with much to say keeps to what the other one takes, and is not cut off.
func TestABusyAgentIsNotCutOff(t *testing.T) {
	m := newMarket(t)
	a, b := m.pair(func(c *mesh.Config) {
		c.Limits = mesh.DefaultLimits()
		c.Limits.Messages = mesh.Rate{PerSecond: 500, Burst: 500}
	})
	for i := range 1000 { // as many as its queue holds
		a.Send(query(i, b.Self()))
	}
	for i := range 1000 {
		b.awaitQuery(i)
	}
	if n := b.Counters().CutOff; n != 0 {
		t.Errorf("it was cut off %d times", n)
	}
}

package mesh_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// patience is the deadline of every wait: far above what a loaded machine needs.
const patience = 30 * time.Second

// answered is how long one who may have lost a message waits before it says it again.
const answered = 500 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// market issues credentials and starts agents that trust each other.
type market struct {
	t     testing.TB
	ca    *identity.CA
	trust *identity.Trust
}

func newMarket(t testing.TB) *market {
	ca, err := identity.NewCA("test authority", time.Now(), time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &market{t, ca, trust}
}

func (m *market) credential(name string) *identity.Credential {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	keyPEM, err := identity.KeyPEM(key)
	if err != nil {
		m.t.Fatal(err)
	}
	cert, err := m.ca.Issue(name, key.Public(), time.Now(), time.Hour)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := identity.Parse(cert, keyPEM)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// agent is a mesh with a role that only listens.
type agent struct {
	*mesh.Mesh
	t     testing.TB
	inbox chan protocol.Message
}

// config is for an agent whose role takes everything at once.
func (m *market) config(name string, inbox chan protocol.Message) mesh.Config {
	return mesh.Config{
		Credential: m.credential(name), Trust: m.trust, Codec: mesh.Wire(codec.NewOpener(m.trust, 16)),
		Deliver:      func(msg protocol.Message) error { inbox <- msg; return nil },
		HearPresence: true, Log: testLog(),
	}
}

func testLog() *slog.Logger {
	var w io.Writer = io.Discard
	if os.Getenv("MESH_LOG") != "" {
		w = os.Stderr
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (m *market) start(name string, change func(*mesh.Config)) *agent {
	inbox := make(chan protocol.Message, 1<<16)
	cfg := m.config(name, inbox)
	if change != nil {
		change(&cfg)
	}
	return m.listen(cfg, inbox)
}

func (m *market) listen(cfg mesh.Config, inbox chan protocol.Message) *agent {
	m.t.Helper()
	n, err := mesh.Listen(cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := n.Close(); err != nil {
			m.t.Error(err)
		}
	})
	return &agent{n, m.t, inbox}
}

// joined starts an agent that joins by another.
func (m *market) joined(name string, by *agent) *agent {
	return m.start(name, func(c *mesh.Config) { c.Bootstrap = by.Addresses() })
}

// pair starts two agents that have met.
func (m *market) pair(change func(*mesh.Config)) (a, b *agent) {
	a = m.start("alice", change)
	b = m.start("bob", func(c *mesh.Config) {
		c.Bootstrap = a.Addresses()
		if change != nil {
			change(c)
		}
	})
	a.awaitKnown(b.Self())
	b.awaitKnown(a.Self())
	return a, b
}

func presence(k protocol.Kind, counter uint64) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolPresence,
		Body:     message.Presence{Agent: k, TTL: protocol.PresenceTTL, Counter: counter},
	}
}

// query is a small message that any agent may send.
func query(n int, to ...protocol.AgentID) protocol.Message {
	return protocol.Message{
		Performative: protocol.QueryRef, Receivers: to, Protocol: protocol.ProtocolRequest,
		Conversation: fmt.Sprintf("c-%d", n), ReplyWith: fmt.Sprintf("r-%d", n), Body: message.BalanceQuery{},
	}
}

// await takes messages until one fits.
func (a *agent) await(what string, fits func(protocol.Message) bool) protocol.Message {
	a.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case m := <-a.inbox:
			if fits(m) {
				return m
			}
		case <-deadline:
			a.t.Fatalf("%s: waited %s for %s", a.Self(), patience, what)
		}
	}
}

func (a *agent) awaitQuery(n int) protocol.Message {
	a.t.Helper()
	return a.await(fmt.Sprintf("query %d", n), func(m protocol.Message) bool {
		return m.Conversation == fmt.Sprintf("c-%d", n) && m.Sender != protocol.LocalMesh
	})
}

func (a *agent) awaitUndeliverable(n int) protocol.Message {
	a.t.Helper()
	return a.await(fmt.Sprintf("failure of query %d", n), func(m protocol.Message) bool {
		return m.Conversation == fmt.Sprintf("c-%d", n) && m.Sender == protocol.LocalMesh
	})
}

func (a *agent) awaitKnown(id protocol.AgentID) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("%s knows %s", a.Self(), id), func() bool { return a.knows(id) })
}

func (a *agent) knows(id protocol.AgentID) bool {
	for _, k := range a.Known() {
		if k.Agent == id {
			return k.Connected
		}
	}
	return false
}

// eventually waits for a condition that no channel tells of.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %s until %s", patience, what)
		}
	}
}

// callForProposals is a second-round call, which needs no document.
func callForProposals() protocol.Message {
	return protocol.Message{
		Performative: protocol.CFP, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolAuction, Conversation: "auction", ReplyWith: "round-2",
		ReplyBy: time.Now().Add(time.Minute),
		Body: message.CallForProposals{
			Round: 2, Ceilings: []message.Ceiling{{Unit: 0, Price: protocol.Credit}},
			Objective: protocol.ObjectiveCost,
		},
	}
}

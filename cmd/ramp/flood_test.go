package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// floodLength is how many messages one peer sends as fast as it can.
const floodLength = 10000

// mostTries bounds the purchases of a user among faults: on a slow machine a vote may
// come too late, and the next one goes on.
const mostTries = 60

// A member of the market floods the seller and the bank: it is held back, and the
// auctions of another user go on, from when the seller has heard of the flood.
func TestFloodByAMember(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	f := m.intruder(t)
	stop := make(chan struct{})
	flooded := make(chan int)
	go func() { flooded <- f.flood([]protocol.AgentID{m.ids["atlas"], m.ids["bank"]}, stop) }()
	must(t, until(untilTime, func() (bool, error) {
		var quotes []message.QuoteLine
		err := call(context.Background(), m.path("atlas"), "/v1/offers", nil, &quotes)
		return slices.ContainsFunc(quotes, func(q message.QuoteLine) bool { return q.Buyer == f.id }), err
	}))
	settled := 0
	for try := 0; try < mostTries && settled < 3; try++ {
		began := time.Now()
		watching, end := context.WithTimeout(context.Background(), untilTime)
		m.watch(watching, m.begin(t, "job.xml"), nil)
		end()
		settled = m.count(t)
		t.Logf("%d bought after %s", settled, time.Since(began))
	}
	close(stop)
	if n := <-flooded; n < floodLength {
		t.Errorf("only %d messages were sent", n)
	}
	m.settleDown(t)
	m.verify(t)
	if settled < 3 {
		t.Errorf("%d purchases were settled during the flood, of %d that were tried", settled, mostTries)
	}
	for _, name := range []string{"atlas", "bank", "user"} {
		select {
		case <-m.daemons[name].ended:
			t.Errorf("%s has ended\n%s", name, m.daemons[name].lastLines())
		default:
		}
	}
}

// intruder is a member of the market that says too much.
type intruder struct {
	mesh     *mesh.Mesh
	id       protocol.AgentID
	document []byte
}

func (m *market) intruder(t *testing.T) *intruder {
	t.Helper()
	key, err := identity.NewKey(rand.Reader)
	must(t, err)
	cert, err := m.ca.Issue("mallory", key.Public(), time.Now(), time.Hour)
	must(t, err)
	keyPEM, err := identity.KeyPEM(key)
	must(t, err)
	cred, err := identity.Parse(cert, keyPEM)
	must(t, err)
	trust, err := identity.NewTrust(m.ca.CertPEM(), nil)
	must(t, err)
	x, err := mesh.Listen(mesh.Config{
		Credential: cred, Trust: trust, Codec: mesh.Wire(codec.NewOpener(trust, 16)),
		Deliver: func(protocol.Message) error { return nil }, Bootstrap: m.daemons["bank"].ready.Addresses, HearPresence: true,
	})
	must(t, err)
	t.Cleanup(func() { _ = x.Close() })
	joining, stop := context.WithTimeout(context.Background(), untilTime)
	defer stop()
	must(t, x.Acquainted(joining))
	return &intruder{x, cred.ID, []byte(document(requestXML("flood", 16, 60)))}
}

// flood sends calls for proposals until there were floodLength and stop is closed.
func (x *intruder) flood(to []protocol.AgentID, stop chan struct{}) int {
	for n := 0; ; n++ {
		m := protocol.Message{
			Performative: protocol.CFP, Sender: x.id, Receivers: to, Protocol: protocol.ProtocolAuction,
			Conversation: fmt.Sprintf("flood-%d", n), ReplyWith: "r1", ReplyBy: time.Now().Add(time.Minute),
			Body: message.CallForProposals{Round: 1, Document: x.document, Objective: protocol.ObjectiveCost},
		}
		x.mesh.Send(m)
		if n < floodLength {
			continue
		}
		select {
		case <-stop:
			return n
		default:
		}
	}
}

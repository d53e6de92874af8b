package resource_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/resource/federation"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

// The home of a job confirms its sale to the winner and informs its owner at the same
// time. A launch that arrives before the confirmation is to be asked for again.
func TestALaunchMayOvertakeTheConfirmation(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "home", "bank")
	text := fmt.Sprintf("levels: [low]\nusers: {'*': low}\nsites:\n- {agent: %s}\n- {agent: %s}\n", a.id("atlas"), a.id("home"))
	r, err := rules.Read([]byte(text))
	must(t, err)
	cfg := a.config()
	cfg.Federation = federation.Config{Modules: 2, Rules: r}
	s := newSite(t, cfg)
	s.pass(time.Second)
	say := func(from, token string, p protocol.Performative, body protocol.Body) (answers []protocol.Message) {
		s.receive(protocol.Message{Performative: p, Sender: a.id(from), Receivers: []protocol.AgentID{a.id("atlas")},
			Protocol: token, Conversation: "j", ReplyWith: "j", Body: body})
		return s.take(a.id(from))
	}
	home := func(p protocol.Performative, body protocol.Body) []protocol.Message {
		return say("home", protocol.ProtocolEnglish, p, body)
	}
	launched := func() protocol.Code {
		m := say("ann", protocol.ProtocolRequest, protocol.Request, message.Launch{
			Contract: message.JobContract(a.id("home"), "j", 1), ID: "j.1", Command: []string{"/bin/work"}})
		if len(m) != 1 {
			t.Fatalf("the launch has %d answers", len(m))
		}
		if no, ok := m[0].Body.(message.Refusal); ok {
			return no.Reasons[0].Code
		}
		return ""
	}

	m := home(protocol.Inform, message.AuctionOpen{Rules: r.Digest, Owner: a.id("ann"), Terms: message.JobTerms{Level: 1, Least: 1, Most: 2, Wall: time.Minute, Where: a.id("home")}, Number: 1, Ends: s.now})
	if len(m) != 1 || m[0].Performative != protocol.Propose {
		t.Fatalf("no bid, but %v", m)
	}
	award := message.JobAward{Award: 1, Number: 1, Seq: m[0].Body.(message.JobBid).Seq}
	if code := launched(); code != protocol.CodeUnknown {
		t.Errorf("the launch of a job that it does not have: %q", code)
	}
	if m := home(protocol.AcceptProposal, award); len(m) != 1 || m[0].Performative != protocol.Agree {
		t.Fatalf("not agreed to, but %v", m)
	}
	if code := launched(); code != protocol.CodeUnavailable {
		t.Errorf("before the confirmation: %q", code)
	}
	s.start()
	if code := launched(); code != protocol.CodeUnavailable {
		t.Errorf("after a restart: %q", code)
	}
	home(protocol.Confirm, award)
	if code := launched(); code == protocol.CodeUnavailable || code == protocol.CodeUnknown {
		t.Errorf("after the confirmation: %q", code)
	}
}

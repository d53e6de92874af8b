package resource_test

import (
	"strings"
	"testing"

	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A seller that starts asks its banks what it has sold. Until they have told, it
// is not there for the market, and who calls it all the same is refused.
func TestNothingIsOfferedBeforeTheBanksHaveTold(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	cfg := a.config()
	cfg.TrustJournal = false
	role, out, err := resource.New(cfg, store{}, noon)
	must(t, err)
	var asked protocol.Message
	for _, m := range out.Send {
		switch m.Body.(type) {
		case message.SoldQuery:
			asked = m
		case message.Presence:
			t.Error("it is announced before it can sell")
		}
	}
	if asked.Body == nil || asked.Receivers[0] != a.id("bank") {
		t.Fatalf("the bank is not asked: %+v", out.Send)
	}
	role.Receive(noon, protocol.Message{Sender: protocol.LocalQueue, Body: message.QueueChanged{At: noon, Capacity: 100}})
	call := protocol.Message{Performative: protocol.CFP, Sender: a.id("ann"), Conversation: "c", Body: message.CallForProposals{
		Round: 1, Document: purchase, Terms: cfg.Terms, Modes: []protocol.Mode{protocol.ModeOnReservation}}}
	r, ok := role.Receive(noon, call).Send[0].Body.(message.Refusal)
	if !ok || r.Reasons[0].Code != protocol.CodeUnavailable || !strings.Contains(r.Reasons[0].Note, string(a.id("bank"))) {
		t.Fatalf("answer %+v, want unavailable because of the bank", r)
	}
	if s := role.Status(noon); s.Sales != message.SalesPaused || !strings.Contains(s.Why, "lists the contracts that name this seller") {
		t.Fatalf("status: %s, %s", s.Sales, s.Why)
	}
	role.Receive(noon, asked.Reply(a.id("ann"), protocol.Inform, message.SoldList{Complete: true})) // not the bank
	if s := role.Status(noon); s.Sales != message.SalesPaused {
		t.Fatal("a stranger's word ends the pause")
	}
	told := role.Receive(noon, asked.Reply(a.id("bank"), protocol.Inform, message.SoldList{Complete: true}))
	if _, ok := told.Send[0].Body.(message.Presence); !ok {
		t.Fatalf("it is not announced: %+v", told.Send)
	}
	if s := role.Status(noon); s.Sales != message.SalesOpen {
		t.Fatalf("status: %s, %s", s.Sales, s.Why)
	}
	call.Conversation = "d"
	if p := role.Receive(noon, call).Send[0].Performative; p != protocol.Propose {
		t.Fatalf("answer %s, want propose", p)
	}
}

package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A seller that has lost a contract gets a copy from its user, also after a restart,
// until the contract is over or, if it is paid after the fact, until nobody can report
// on it. Another seller gets nothing.
func TestASellerGetsALostContractAgain(t *testing.T) {
	t.Run("paid on reservation", func(t *testing.T) { givenAgain(t, protocol.ModeOnReservation, 0) })
	t.Run("paid on completion", func(t *testing.T) { givenAgain(t, protocol.ModeOnCompletion, protocol.ReportWithin) })
}

// givenAgain checks that copies are available for a time after the end of the slot.
func givenAgain(t *testing.T, mode protocol.Mode, after time.Duration) {
	m, cast := open(t, 2, func(_ string, cfg *resource.Config) { cfg.Modes = []protocol.Mode{mode} })
	p := settle(t, m, 1, message.Options{Mode: mode})
	seller := p.Units[0].Resource
	other := markettest.Seller(1)
	if other == seller {
		other = markettest.Seller(2)
	}
	var got []string
	m.Fate = func(x markettest.Packet) markettest.Fate {
		if x.From == markettest.User && x.Message.InReplyTo == "lost" {
			kind := x.Message.Body.Kind()
			if b, ok := x.Message.Body.(message.BundleCopy); ok && (b.Bundle.ID != p.Contract || !b.Bundle.Checked()) {
				kind = "another contract"
			}
			got = append(got, x.To+" "+kind)
		}
		return markettest.Fate{}
	}
	ask := func(from string, act protocol.Performative, want string) {
		t.Helper()
		got = nil
		m.Inject(from, markettest.User, protocol.Message{
			Performative: act, Receivers: []protocol.AgentID{cast.ID(markettest.User)}, Protocol: protocol.ProtocolRequest,
			Conversation: "p", ReplyWith: "lost", Body: message.BundleQuery{Contract: p.Contract},
		})
		m.Run(time.Second)
		if len(got) != 1 || got[0] != want {
			t.Fatalf("%s is told %q, want %q", from, got, want)
		}
	}
	ask(seller, protocol.QueryRef, seller+" bundle-copy")
	ask(other, protocol.QueryRef, other+" refusal")
	m.Kill(markettest.User, time.Millisecond)
	m.Run(time.Second)
	ask(seller, protocol.QueryRef, seller+" bundle-copy")
	if after > 0 {
		m.Run(p.Units[0].End.Add(after).Sub(m.Now()) - time.Minute)
		m.Kill(markettest.User, time.Millisecond)
		m.Run(time.Second)
		ask(seller, protocol.QueryRef, seller+" bundle-copy")
	}
	m.Run(p.Units[0].End.Add(after).Sub(m.Now()) + time.Second)
	m.Kill(markettest.User, time.Millisecond)
	m.Run(time.Second)
	ask(seller, protocol.QueryRef, seller+" refusal")
}

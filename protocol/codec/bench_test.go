package codec_test

import (
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// The most frequent messages of an auction.
func auctionMessages(m *market) map[string]protocol.Message {
	slot := protocol.Slot{Start: now, End: now.Add(time.Hour), Cores: 64}
	env := protocol.Message{
		Sender: m.user.ID, Receivers: []protocol.AgentID{m.seller.ID}, Protocol: protocol.ProtocolAuction,
		Conversation: "20260801-120000-0123456789abcdef", ReplyWith: "r2", ReplyBy: now.Add(15 * time.Second),
	}
	cfp, propose, stands, first := env, env, env, env
	cfp.Performative = protocol.CFP
	cfp.Body = message.CallForProposals{Round: 2, Ceilings: []message.Ceiling{{Price: 900_000}}}
	first.Performative = protocol.CFP
	first.Body = message.CallForProposals{
		Round: 1, Document: []byte("<x>" + strings.Repeat("a", 1000) + "</x>"), Ceilings: []message.Ceiling{{Price: protocol.Credit}},
		Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{{Bank: m.bank.ID, Currency: "CUR"}}, Modes: []protocol.Mode{protocol.ModeOnReservation},
	}
	propose.Performative = protocol.Propose
	propose.Body = message.Proposal{Round: 2, Offers: []protocol.Offer{{
		ID: "o-2-0", Cost: 57_600_000, ValidUntil: now.Add(protocol.OfferValidity),
		Items: []protocol.Item{{Slot: slot, Price: 900_000, Cost: 57_600_000}},
	}}}
	stands.Performative = protocol.Refuse
	stands.Body = message.Refusal{Round: 2, Reasons: []protocol.Reason{{Code: protocol.CodeStands, Unit: protocol.AllUnits}}}
	return map[string]protocol.Message{"cfp round 1": first, "cfp round 2": cfp, "propose": propose, "refuse": stands}
}

func BenchmarkEncode(b *testing.B) {
	for name, msg := range auctionMessages(newMarket(b)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Encode(msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	m := newMarket(b)
	o := codec.NewOpener(m.trust, 64)
	for name, msg := range auctionMessages(m) {
		raw, err := codec.Encode(msg)
		must(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := o.Open(raw, m.user.ID, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A bank opens a known sale or a new one.
func BenchmarkOpenSettlement(b *testing.B) {
	m := newMarket(b)
	msg := protocol.Message{
		Performative: protocol.Request, Receivers: []protocol.AgentID{m.bank.ID}, Protocol: protocol.ProtocolRequest,
		Conversation: "c1", Body: message.Settlement{Sale: m.sale},
	}
	raw, err := codec.Encode(msg)
	must(b, err)
	for name, o := range map[string]codec.Opener{"remembered": codec.NewOpener(m.trust, 64), "anew": {Trust: m.trust}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.Open(raw, m.seller.ID, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

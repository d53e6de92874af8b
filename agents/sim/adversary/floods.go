package adversary

import (
	"fmt"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A flood is so many messages, so far apart: hundreds a second.
const (
	floodSize = 300
	floodGap  = 3 * time.Millisecond
)

// floods is a seller that now and then says hundreds of things a second to
// everybody: bids in every auction it has heard of, votes that nobody asked for,
// calls for proposals, presences, and questions to the bank. And now and then it
// hails on one honest site: every message opens a thread of its own.
func floods(s *market.Stage) {
	var calls []protocol.Message
	h := seller(s, s.Name, cheap(), func(b *bent) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			if m.Performative == protocol.CFP {
				if calls = append(calls, m); len(calls) > maxTape {
					calls = calls[1:]
				}
			}
			return true, protocol.Output{}
		}
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			if p, ok := m.Body.(message.Proposal); ok {
				return bidMany(m, p)
			}
			return one(m)
		}
	})
	s.Often(20*time.Minute, func() {
		for i := range floodSize {
			s.World().After(time.Duration(i)*floodGap, func() { playBack(s, h, noise(s, calls, i)) })
		}
	})
	hails := 0
	s.Often(time.Hour, func() {
		hails++
		sites := s.Sites()
		to, document := sites[s.Chance.N(len(sites))], s.Document(s.World().Now())
		for i := range hailSize {
			talk := fmt.Sprintf("%s-hail-%d-%d", s.Name, hails, i)
			s.World().After(time.Duration(i)*floodGap, func() { playBack(s, h, hail(s, to, talk, document, i)) })
		}
	})
}

// A hail is so many messages: more than an agent may remember threads, and, of
// one in hailCalls, auctions of one buyer.
const (
	hailSize  = 1400
	hailCalls = 4
)

// hail is one message that opens a thread: a call, or what no seller takes.
func hail(s *market.Stage, to protocol.AgentID, talk string, document []byte, i int) protocol.Message {
	if i%hailCalls > 0 {
		return say(to, protocol.QueryRef, protocol.ProtocolRequest, talk, message.OutcomeQuery{Contract: someContract(s)})
	}
	m := say(to, protocol.CFP, protocol.ProtocolAuction, talk, message.CallForProposals{
		Round: 1, Document: document, Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{s.Cast().Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}})
	m.ReplyBy = s.World().Now().Add(protocol.DefaultRoundLimit)
	return m
}

// A flooded round gets so many proposals, each with so many copies of every offer.
const (
	floodBids   = 3
	floodCopies = 50
)

// bidMany is a proposal again and again, with every offer as if it were another.
func bidMany(m protocol.Message, p message.Proposal) []protocol.Message {
	list := one(m)
	for i := range floodBids {
		many := message.Proposal{Round: p.Round}
		for j := range floodCopies {
			for _, o := range p.Offers {
				o.Group = fmt.Sprintf("%d-%d", i, j)
				o.ID += "-" + o.Group
				many.Offers = append(many.Offers, o)
			}
		}
		m.Body = many
		list = append(list, m)
	}
	return list
}

// noise is one message of a flood.
func noise(s *market.Stage, calls []protocol.Message, i int) protocol.Message {
	parties := s.Parties()
	to := parties[s.Chance.N(len(parties))]
	conversation := fmt.Sprintf("%s-%d", s.Name, s.Chance.N(floodSize))
	if len(calls) > 0 && s.Chance.N(2) == 0 {
		conversation = calls[s.Chance.N(len(calls))].Conversation
	}
	now := s.World().Now()
	slot := protocol.Slot{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Cores: 1}
	switch i % 6 {
	case 0:
		return say(to, protocol.Agree, protocol.ProtocolCommit, conversation, message.Vote{
			Offer: "u0-1", HoldUntil: now.Add(time.Minute), Reservations: []message.Reservation{{ID: conversation, Slot: slot}}})
	case 1:
		m := say(to, protocol.CFP, protocol.ProtocolAuction, conversation, message.CallForProposals{
			Round: 1 + s.Chance.N(3), Document: s.Document(now), Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{s.Cast().Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}})
		m.ReplyBy = now.Add(protocol.DefaultRoundLimit)
		return m
	case 2:
		return say(protocol.Everyone, protocol.Inform, protocol.ProtocolPresence, "presence", message.Presence{
			Agent: protocol.KindResource, Properties: protocol.Properties{Cores: sellerCores}, Start: protocol.Credit, Min: 1, TTL: time.Hour,
			Terms: []protocol.Terms{s.Cast().Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}, Counter: uint64(now.Unix())*1000 + uint64(i)})
	case 3:
		return say(s.Cast().ID(market.BankName), protocol.QueryRef, protocol.ProtocolRequest, conversation, message.OutcomeQuery{Contract: someContract(s)})
	case 4:
		return say(to, protocol.Cancel, protocol.ProtocolCommit, conversation, message.Cancellation{Reservations: []string{conversation}})
	}
	return say(to, protocol.Refuse, protocol.ProtocolCommit, conversation, message.Refused(protocol.CodeBusy, "no"))
}

// someContract is the ID of a contract that nobody has drawn up.
func someContract(s *market.Stage) protocol.ContractID {
	return protocol.ContractID(fmt.Sprintf("%064x", s.Chance.N(1<<30)))
}

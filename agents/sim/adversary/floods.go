package adversary

import (
	"fmt"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The size of a flood, and the time between its messages: hundreds per second.
const (
	floodSize = 300
	floodGap  = 3 * time.Millisecond
)

// floods is a seller that sometimes sends everybody hundreds of messages per second: bids in
// every auction it knows, unrequested votes, calls for proposals, presences, and queries to
// the bank. Sometimes it also hails on one honest site: each message begins a conversation.
func floods(s *market.Stage) {
	var calls []protocol.Message
	h := seller(s, s.Name, cheap(), func(b *tampered) {
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

// The size of a hail: more than an agent may remember conversations; and, as one message in
// hailCalls is a call, more than it may remember auctions of one buyer.
const (
	hailSize  = 1400
	hailCalls = 4
)

// hail is a message that begins a conversation: a call, or one that no seller accepts.
func hail(s *market.Stage, to protocol.AgentID, talk string, document []byte, i int) protocol.Message {
	if i%hailCalls > 0 {
		return say(to, protocol.QueryRef, protocol.ProtocolRequest, talk, message.OutcomeQuery{Contract: someContract(s)})
	}
	m := say(to, protocol.CFP, protocol.ProtocolAuction, talk, message.CallForProposals{
		Round: 1, Document: document, Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{s.Cast().Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}})
	m.ReplyBy = s.World().Now().Add(protocol.DefaultRoundLimit)
	return m
}

// The number of proposals in a flooded round, and of copies of each offer in them.
const (
	floodBids   = 3
	floodCopies = 50
)

// bidMany repeats a proposal, with its offers duplicated under other names.
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

// someContract is the ID of a contract that does not exist.
func someContract(s *market.Stage) protocol.ContractID {
	return protocol.ContractID(fmt.Sprintf("%064x", s.Chance.N(1<<30)))
}

package adversary

import (
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// hoarders are users of one owner, one for each honest site, that have every
// offer held and buy nothing: four of this kind outnumber the honest sites four to
// one, so that each can block as much as one buyer may.
func hoarders(s *market.Stage) {
	for i := range s.Config().Resources {
		name := fmt.Sprintf("%s-%d", s.Name, i+1)
		cred := s.Cast().Credential(name)
		h := s.Add(sim.Spec{
			Name: name, Credential: cred,
			Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
				return hoarder{cred.ID}, protocol.Output{}, nil
			},
		}, 0)
		calls := 0
		s.Often(10*time.Minute, func() {
			calls++
			s.World().Do(h, func(now time.Time) protocol.Output { return callAll(s, h, now, calls) })
			if i == 0 && calls%hoardMany == 1 {
				s.World().Do(h, func(now time.Time) protocol.Output { return callMany(s, h, now, calls) })
			}
		})
	}
}

// callAll asks every honest site for all that one order can want.
func callAll(s *market.Stage, h *sim.Host, now time.Time, n int) protocol.Output {
	return callFor(s, h, now, fmt.Sprintf("%s-%d", h.Name, n), longFor(now))
}

// callMany asks for so many small things that all of them together would keep a
// slow batch system busy for longer than anybody holds.
func callMany(s *market.Stage, h *sim.Host, now time.Time, n int) protocol.Output {
	return callFor(s, h, now, fmt.Sprintf("%s-many-%d", h.Name, n), manyFor(now))
}

func callFor(s *market.Stage, h *sim.Host, now time.Time, conversation string, document []byte) protocol.Output {
	m := protocol.Message{
		Performative: protocol.CFP, Sender: h.ID(), Receivers: s.Sites(), Protocol: protocol.ProtocolAuction,
		Conversation: conversation, ReplyWith: "r1", ReplyBy: now.Add(protocol.DefaultRoundLimit),
		Body: message.CallForProposals{
			Round: 1, Document: document, Objective: protocol.ObjectiveCost,
			Terms: []protocol.Terms{s.Cast().Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation},
		},
	}
	return protocol.Output{Send: one(m)}
}

// What a hoarder asks for: more core-seconds than one buyer may hold of a small
// site, on days when nobody else wants them, so that its limit is what stops it.
const (
	hoardDays  = 10
	hoardCores = 64
	hoardUnits = 80 // small ones, more than may wait in one batch system
	hoardMany  = 9  // every so many orders of the first of them is for small ones
)

// manyFor is a document for many single cores of ten minutes, all in one day.
func manyFor(now time.Time) []byte {
	var d rfql.Draft
	from := now.Truncate(time.Minute).Add((hoardDays + 1) * 24 * time.Hour)
	for range hoardUnits {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: 90 * protocol.Credit, TotalCores: 1, NotBefore: from, End: from.Add(24 * time.Hour), Wall: 10 * time.Minute,
		})
	}
	return written(d, now)
}

// longFor is a document for a whole day's cores on each of some days.
func longFor(now time.Time) []byte {
	var d rfql.Draft
	for i := range hoardDays {
		from := now.Truncate(time.Minute).Add(time.Duration(i+1) * 24 * time.Hour)
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: 90 * protocol.Credit, TotalCores: hoardCores, NotBefore: from, End: from.Add(24 * time.Hour), Wall: 24 * time.Hour,
		})
	}
	return written(d, now)
}

func written(d rfql.Draft, now time.Time) []byte {
	doc, err := rfql.Check(d, now)
	if err != nil {
		panic(fmt.Sprintf("adversary: what hoarders want: %v", err))
	}
	return doc.XML()
}

// hoarder accepts every offer, and then says nothing more.
type hoarder struct{ self protocol.AgentID }

// Receive accepts what is offered.
func (h hoarder) Receive(now time.Time, m protocol.Message) protocol.Output {
	p, ok := m.Body.(message.Proposal)
	if !ok {
		return protocol.Output{}
	}
	var out protocol.Output
	for _, o := range p.Offers {
		a := m.Reply(h.self, protocol.AcceptProposal, message.Acceptance{Offer: o, HoldUntil: now.Add(time.Hour)})
		a.Protocol, a.ReplyWith = protocol.ProtocolCommit, "vote-"+o.ID
		out.Send = append(out.Send, a)
	}
	return out
}

// Wake has nothing to do.
func (h hoarder) Wake(time.Time) protocol.Output { return protocol.Output{} }

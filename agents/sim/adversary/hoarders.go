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

// hoarders are users of one owner, one for each honest site, that have every offer held and
// buy nothing. Four of this kind outnumber the honest sites four to one, and each can block
// as much as one buyer may.
func hoarders(s *market.Stage) {
	for i := range s.Config().Resources {
		name := fmt.Sprintf("%s-%d", s.Name, i+1)
		cred := s.Cast().Credential(name)
		h := s.Add(sim.Spec{
			Name: name, Credential: cred,
			Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
				return Hoarder{cred.ID, HoardHolds[i%len(HoardHolds)]}, protocol.Output{}, nil
			},
		}, 0)
		calls := 0
		s.Often(hoardGap, func() {
			calls++
			s.World().Do(h, func(now time.Time) protocol.Output {
				return callFor(s, h, now, fmt.Sprintf("%s-%d", h.Name, calls), Today(now))
			})
			if i == 0 && calls%hoardMany == 1 {
				s.World().Do(h, func(now time.Time) protocol.Output {
					return callFor(s, h, now, fmt.Sprintf("%s-many-%d", h.Name, calls), manyFor(now))
				})
			}
		})
	}
}

// callFor asks every honest site.
func callFor(s *market.Stage, h *sim.Host, now time.Time, conversation string, document []byte) protocol.Output {
	return protocol.Output{Send: one(Call(now, h.ID(), s.Sites(), s.Cast().Terms(), conversation, document))}
}

// Call is the first call for proposals of an auction.
func Call(now time.Time, self protocol.AgentID, sites []protocol.AgentID, terms protocol.Terms, conversation string, document []byte) protocol.Message {
	return protocol.Message{
		Performative: protocol.CFP, Sender: self, Receivers: sites, Protocol: protocol.ProtocolAuction,
		Conversation: conversation, ReplyWith: "r1", ReplyBy: now.Add(protocol.DefaultRoundLimit),
		Body: message.CallForProposals{
			Round: 1, Document: document, Objective: protocol.ObjectiveCost,
			Terms: []protocol.Terms{terms}, Modes: []protocol.Mode{protocol.ModeOnReservation},
		},
	}
}

// A hoarder's request: at each site all cores of the next hours, which honest buyers want.
const (
	hoardGap   = 3 * time.Minute // between two requests of one hoarder
	hoardUnits = 80              // small ones, more than may wait in one batch system
	hoardMany  = 30              // the first hoarder's orders between two for small units
)

// hoardSizes and hoardWalls are the cores and times of its units: of those that a site
// offers, it holds the largest that are free.
var (
	hoardSizes = [...]int{1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1}
	hoardWalls = [...]time.Duration{165 * time.Minute, time.Hour}
)

// HoardHolds are for how long hoarders hold: as long as a site allows, or hardly longer than
// it demands.
var HoardHolds = [...]time.Duration{time.Hour, 12 * time.Second}

// manyFor requests many single cores for ten minutes, all on one day: they would keep a slow
// batch system busy for longer than any hold.
func manyFor(now time.Time) []byte {
	var d rfql.Draft
	from := now.Truncate(time.Minute).Add(24 * time.Hour)
	for range hoardUnits {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: 90 * protocol.Credit, TotalCores: 1, NotBefore: from, End: from.Add(24 * time.Hour), Wall: 10 * time.Minute,
		})
	}
	return written(d, now)
}

// Today is a hoarder's request for cores from the next minutes on.
func Today(now time.Time) []byte {
	var d rfql.Draft
	from := now.Truncate(time.Minute).Add(10 * time.Minute)
	for _, wall := range hoardWalls {
		for _, cores := range hoardSizes {
			d.Requests = append(d.Requests, rfql.DraftRequest{
				Price: 90 * protocol.Credit, TotalCores: cores, NotBefore: from, End: from.Add(wall), Wall: wall,
			})
		}
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

// Hoarder accepts every offer, and then falls silent.
type Hoarder struct {
	Self protocol.AgentID
	Hold time.Duration // as it asks for; the site may allow less
}

// Receive accepts offers.
func (h Hoarder) Receive(now time.Time, m protocol.Message) protocol.Output {
	p, ok := m.Body.(message.Proposal)
	if !ok {
		return protocol.Output{}
	}
	var out protocol.Output
	for _, o := range p.Offers {
		a := m.Reply(h.Self, protocol.AcceptProposal, message.Acceptance{Offer: o, HoldUntil: now.Add(h.Hold)})
		a.Protocol, a.ReplyWith = protocol.ProtocolCommit, "vote-"+o.ID
		out.Send = append(out.Send, a)
	}
	return out
}

// Wake has nothing to do.
func (h Hoarder) Wake(time.Time) protocol.Output { return protocol.Output{} }

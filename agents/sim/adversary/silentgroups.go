package adversary

import (
	"fmt"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// silentOffers is how many offers of the silent seller there are for each unit, more than
// a buyer regards.
const silentOffers = 100

// silentGroups is a seller that offers each unit again and again for nearly nothing, each
// time in a group of its own, and never answers when it should hold one of them.
func silentGroups(s *market.Stage) {
	seller(s, s.Name, cheap(), func(b *tampered) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			_, asked := m.Body.(message.Acceptance)
			return !asked, protocol.Output{}
		}
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			if p, ok := m.Body.(message.Proposal); ok {
				m.Body = inGroups(p)
			}
			return one(m)
		}
	})
}

// inGroups repeats each offer of one unit in groups of their own, for nearly nothing.
func inGroups(p message.Proposal) message.Proposal {
	many := message.Proposal{Round: p.Round, Refusals: p.Refusals}
	for _, o := range p.Offers {
		if len(o.Items) > 1 {
			continue
		}
		id := o.ID
		for i := range silentOffers {
			it := o.Items[0]
			it.Price = protocol.Credit/1000 + protocol.Credits(i)
			it.Cost, _ = protocol.Cost(it.Price, it.Slot.Cores, it.Slot.Wall()) // it is below the honest one
			o.ID, o.Group = fmt.Sprint(id, "-", i), fmt.Sprint("group-", it.Unit, "-", i)
			o.Items, o.Cost = []protocol.Item{it}, it.Cost
			many.Offers = append(many.Offers, o)
		}
	}
	return many
}

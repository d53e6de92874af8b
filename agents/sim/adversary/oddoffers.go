package adversary

import (
	"fmt"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// oddOffers is a seller with invalid bids: unknown units, absurd prices, no price, slots in
// the past, other sizes, or wrong sums.
func oddOffers(s *market.Stage) {
	self := s.Cast().ID(s.Name)
	seller(s, s.Name, cheap(), func(b *tampered) {
		b.hear = func(now time.Time, m protocol.Message) (bool, protocol.Output) {
			call, ok := m.Body.(message.CallForProposals)
			if !ok {
				return true, protocol.Output{}
			}
			p := message.Proposal{Round: call.Round}
			for i := range 6 {
				p.Offers = append(p.Offers, oddOffer(s, now, i, len(call.Ceilings)))
			}
			return false, answer(self, m, protocol.Propose, p)
		}
	})
}

// oddOffer makes an invalid offer.
func oddOffer(s *market.Stage, now time.Time, i, units int) protocol.Offer {
	from := now.Add(30 * time.Minute)
	it := protocol.Item{
		Unit: s.Chance.N(max(1, units)), Price: protocol.Credit, Cost: protocol.Credit,
		Slot: protocol.Slot{Start: from, End: from.Add(3 * time.Hour), Cores: 1 << s.Chance.N(8)},
	}
	switch i {
	case 0:
		it.Unit = units + s.Chance.N(100)
	case 1:
		it.Price, it.Cost = 1<<50, 1<<52
	case 2:
		it.Price, it.Cost = 1, 1
	case 3:
		it.Slot.Start, it.Slot.End = now.Add(-2*time.Hour), now.Add(-time.Hour)
	case 4:
		it.Slot.Cores = protocol.MaxCores
	}
	o := protocol.Offer{ID: fmt.Sprint(i), Items: []protocol.Item{it}, Cost: it.Cost, ValidUntil: now.Add(time.Hour)}
	if i == 5 {
		o.Cost /= 2
	}
	return o
}

package adversary

import (
	"fmt"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// ringSize is the number of sellers that collude.
const ringSize = 3

// ring is sellers that agree on a high price and never undercut each other: each bids it
// once and never lowers it.
func ring(s *market.Stage) {
	price := pricing.Band{Start: 60 * protocol.Credit, Min: 60 * protocol.Credit}
	for i := range ringSize {
		name := fmt.Sprintf("%s-%d", s.Name, i+1)
		self := s.Cast().ID(name)
		seller(s, name, price, func(b *tampered) {
			b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
				call, ok := m.Body.(message.CallForProposals)
				if !ok || call.Round == 1 {
					return true, protocol.Output{}
				}
				no := message.Refused(protocol.CodeStands, "")
				no.Round = call.Round
				return false, answer(self, m, protocol.Refuse, no)
			}
		})
	}
}

package adversary

import (
	"fmt"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// freeloads is a user that wants to pay nothing afterwards: its programs all exit with an
// error, or keep their cores idle, and it never agrees to a usage. Metered, it offers no
// price for idle cores. Where the market has no such modes, it buys like others.
func freeloads(s *market.Stage) {
	h := quietBuyer(s, s.Name, purse, func(b *tampered) {
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			if _, verdict := m.Body.(message.JobVerdict); verdict {
				return nil
			}
			return one(m)
		}
	})
	orders := 0
	s.Often(orderGap, func() {
		orders++
		id := fmt.Sprintf("%s-%d", s.Name, orders)
		buy := message.Buy{ID: id, Name: id, Document: s.Document(h.Now()), Options: message.Options{Rounds: 1}}
		if modes := s.Config().Modes; len(modes) > 0 {
			buy.Options.Mode = modes[s.Chance.N(len(modes))]
			buy.Document = s.Soon(h.Now(), buy.Options.Mode)
			buy.Program = &message.Program{Command: []string{[]string{market.Fails, market.Idles}[s.Chance.N(2)]}}
		}
		s.World().Order(h, buy)
	})
}

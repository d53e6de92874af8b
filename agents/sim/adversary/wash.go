package adversary

import (
	"slices"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// wash is a user that buys only from two sellers of its own owner: money circulates, at
// prices that nobody else pays.
func wash(s *market.Stage) {
	own := []protocol.AgentID{s.Cast().ID(s.Name + "-1"), s.Cast().ID(s.Name + "-2")}
	for _, id := range own {
		seller(s, id.Name(), pricing.Band{Start: 14 * protocol.Credit, Min: 14 * protocol.Credit}, nil)
	}
	buyer(s, s.Name, purse, func(b *tampered) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			_, presence := m.Body.(message.Presence)
			return !presence || slices.Contains(own, m.Sender), protocol.Output{}
		}
	})
}

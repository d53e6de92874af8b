package adversary

import (
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// vanishes is a seller that votes and is then unreachable for a while. It keeps its votes
// when it returns, whatever has happened to their contracts.
func vanishes(s *market.Stage) {
	seller(s, s.Name, cheap(), func(b *tampered) {
		var away time.Time
		b.hear = func(now time.Time, _ protocol.Message) (bool, protocol.Output) {
			return !now.Before(away), protocol.Output{}
		}
		b.say = func(now time.Time, m protocol.Message) []protocol.Message {
			if now.Before(away) {
				return nil
			}
			if _, votes := m.Body.(message.Vote); votes {
				away = now.Add(s.Chance.Skewed(sim.Span{Least: time.Second, Most: 30 * time.Minute}))
			}
			return one(m)
		}
	})
}

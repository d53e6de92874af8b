package adversary

import (
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
)

// maxSteps is the most messages that an abandoned purchase lasts for: a round to
// a few sellers, the votes, the bundle, and the bank.
const maxSteps = 16

// abandons is a user that leaves each purchase for good at a step of its own:
// after so many messages it neither says nor hears anything of it.
func abandons(s *market.Stage) {
	left := map[string]int{}
	going := func(conversation string) bool {
		n, known := left[conversation]
		if !known {
			n = s.Chance.N(maxSteps)
			left[conversation] = n
		}
		return n > 0
	}
	buyer(s, s.Name, purse, func(b *bent) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			return m.Protocol == protocol.ProtocolPresence || going(m.Conversation), protocol.Output{}
		}
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			if !going(m.Conversation) {
				return nil
			}
			left[m.Conversation]--
			return one(m)
		}
	})
}

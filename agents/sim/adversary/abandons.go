package adversary

import (
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
)

// maxSteps limits the messages before a purchase is abandoned: a round with a few sellers,
// the votes, the bundle, and the bank.
const maxSteps = 16

// abandons is a user that abandons each purchase at a random step: after so many messages
// it neither sends nor receives anything about it.
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
	buyer(s, s.Name, purse, func(b *tampered) {
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

package adversary

import (
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxTape is how many messages a replayer remembers; it forgets the oldest first.
const maxTape = 400

// replays is a user that records every message and sends it again much later: its own
// messages to their receivers, and received ones to anybody. It presents old copies of
// sellers to the bank again, and asks the bank to void contracts settled long ago.
func replays(s *market.Stage) {
	var said, heard []protocol.Message
	keep := func(tape *[]protocol.Message, m protocol.Message) {
		if *tape = append(*tape, m); len(*tape) > maxTape {
			*tape = (*tape)[1:]
		}
	}
	h := buyer(s, s.Name, purse, func(b *tampered) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			keep(&heard, m)
			if c, ok := m.Body.(message.Countersigned); ok {
				keep(&said, toBank(s, m.Conversation, message.Settlement(c)))
			}
			return true, protocol.Output{}
		}
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			keep(&said, m)
			if c, ok := m.Body.(message.Confirmation); ok {
				keep(&said, toBank(s, m.Conversation, message.Annulment(c)))
			}
			return one(m)
		}
	})
	s.Often(3*time.Minute, func() {
		for range 10 {
			if len(said) > 0 {
				playBack(s, h, said[s.Chance.N(len(said))])
			}
			if len(heard) > 0 {
				m := heard[s.Chance.N(len(heard))]
				parties := s.Parties()
				m.Receivers = []protocol.AgentID{parties[s.Chance.N(len(parties))]}
				playBack(s, h, m)
			}
		}
	})
}

func toBank(s *market.Stage, conversation string, body protocol.Body) protocol.Message {
	return say(s.Cast().ID(market.BankName), protocol.Request, protocol.ProtocolRequest, conversation, body)
}

// playBack sends a recorded message without asking its role.
func playBack(s *market.Stage, h *sim.Host, m protocol.Message) {
	s.World().Do(h, func(now time.Time) protocol.Output {
		return protocol.Output{Send: encodable(h.Credential, now, one(m))}
	})
}

package adversary

import (
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// underbids is a seller that bids below everybody and then refuses the vote.
func underbids(s *market.Stage) { underbidder(s, s.Name) }

func underbidder(s *market.Stage, name string) {
	self := s.Cast().ID(name)
	seller(s, name, cheap(), func(b *tampered) {
		b.hear = func(_ time.Time, m protocol.Message) (bool, protocol.Output) {
			if _, asked := m.Body.(message.Acceptance); !asked {
				return true, protocol.Output{}
			}
			return false, answer(self, m, protocol.Refuse, message.Refused(protocol.CodeBusy, "the cores were taken since the offer"))
		}
	})
}

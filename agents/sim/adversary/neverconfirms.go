package adversary

import (
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// neverConfirms is a seller that bids low and votes yes, but sends nothing once there is a
// bundle, neither to the user nor to the bank.
func neverConfirms(s *market.Stage) {
	seller(s, s.Name, cheap(), func(b *tampered) {
		b.say = func(_ time.Time, m protocol.Message) []protocol.Message {
			switch m.Body.(type) {
			case message.Countersigned, message.Settlement, message.OutcomeQuery:
				return nil
			}
			return one(m)
		}
	})
}

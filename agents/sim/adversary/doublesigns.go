package adversary

import (
	"fmt"
	"slices"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// doubleSigns is a user that signs different bundles for the same reservations, and shows
// each seller one or two, but not the same ones.
func doubleSigns(s *market.Stage) {
	buyer(s, s.Name, purse, func(b *tampered) {
		b.say = func(now time.Time, m protocol.Message) []protocol.Message {
			c, ok := m.Body.(message.Confirmation)
			if !ok {
				return one(m)
			}
			other := m
			v, err := another(s, c.Bundle, now)
			if err != nil {
				return one(m) // the change made the bundle invalid
			}
			other.Body = message.Confirmation{Bundle: v}
			switch s.Chance.N(3) {
			case 0:
				return []protocol.Message{other, m}
			case 1:
				return []protocol.Message{m, other}
			}
			return one(other)
		}
	})
}

// another makes a different bundle with the user's valid signature.
func another(s *market.Stage, v contract.Verified, now time.Time) (contract.Verified, error) {
	b := v.Bundle
	b.Units = slices.Clone(b.Units)
	u := &b.Units[s.Chance.N(len(b.Units))]
	switch s.Chance.N(6) {
	case 0:
		b.Nonce = fmt.Sprintf("%032x", s.Chance.N(1<<30))
	case 1: // cheaper
		u.Cost--
		b.Total--
	case 2: // without one of its units
		b.Total -= b.Units[0].Cost
		b.Units = b.Units[1:]
	case 3:
		b.Bank = s.Cast().ID(s.Name)
	case 4: // longer
		u.Slot.End = u.Slot.End.Add(time.Hour)
	case 5: // the bank may take its time
		b.SettleBy = b.SettleBy.Add(protocol.MaxSettleAhead)
	}
	der, err := contract.Sign(s.Cast().Credential(s.Name), b, now)
	if err != nil {
		return contract.Verified{}, err
	}
	return contract.OpenBundle(der, s.Cast().Trust, now)
}

package adversary

import (
	"slices"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// otherTerms is a seller whose votes and countersignatures deviate from the agreed terms:
// another slot, a shorter hold, an old contract, the same one twice, signed late, or signed
// over altered bytes.
func otherTerms(s *market.Stage) {
	cred := s.Cast().Credential(s.Name)
	var last *contract.Sale
	h := seller(s, s.Name, cheap(), func(b *tampered) {
		b.say = func(now time.Time, m protocol.Message) []protocol.Message {
			switch body := m.Body.(type) {
			case message.Vote:
				if s.Chance.N(4) == 0 {
					m.Body = otherVote(s, body)
				}
			case message.Countersigned:
				sale := otherSale(s, cred, body.Sale, last, now)
				last = &body.Sale
				m.Body = message.Countersigned{Sale: sale}
				return []protocol.Message{m, say(s.Cast().ID(market.BankName), protocol.Request, protocol.ProtocolRequest, m.Conversation, message.Settlement{Sale: sale})}
			case message.Settlement:
				if s.Chance.N(2) == 0 {
					return nil
				}
			}
			return one(m)
		}
	})
	s.Often(20*time.Minute, func() { // late: the copy of an old contract
		if last == nil {
			return
		}
		m := say(last.Bundle.User, protocol.Confirm, protocol.ProtocolCommit, last.Bundle.Conversation, message.Countersigned{Sale: *last})
		playBack(s, h, m)
	})
}

// otherVote makes a vote for terms that were not offered.
func otherVote(s *market.Stage, v message.Vote) message.Vote {
	v.Reservations = slices.Clone(v.Reservations)
	r := &v.Reservations[0]
	switch s.Chance.N(4) {
	case 0:
		r.Slot.Start, r.Slot.End = r.Slot.Start.Add(time.Hour), r.Slot.End.Add(time.Hour)
	case 1:
		v.HoldUntil = v.HoldUntil.Add(-protocol.DefaultHold)
	case 2:
		r.ID = "another"
	default:
		v.Reservations = append(v.Reservations, *r)
	}
	return v
}

// otherSale makes a copy that differs from the signed contract.
func otherSale(s *market.Stage, cred *identity.Credential, sale contract.Sale, last *contract.Sale, now time.Time) contract.Sale {
	switch s.Chance.N(4) {
	case 0:
		if last != nil {
			return *last
		}
	case 1: // signed again, later
		der, err := contract.Countersign(cred, sale.Verified, now.Add(time.Minute))
		if err == nil {
			sale.DER, sale.Countersigned = der, now.Add(time.Minute)
		}
	case 2: // bytes changed under both signatures
		sale.DER = slices.Clone(sale.DER)
		sale.DER[len(sale.DER)/2] ^= 1
	}
	return sale
}

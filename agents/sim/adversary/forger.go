package adversary

import (
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// forger is a seller with a valid credential that sends messages which only others may
// send: the bank's decisions, users' bundles, other sellers' copies, refunds of others'
// sales, cancellations of others' purchases. It signs them itself, in the others' names.
func forger(s *market.Stage) {
	f := &forgery{s: s, own: s.Cast().Credential(s.Name)}
	h := seller(s, s.Name, cheap(), func(b *tampered) {
		b.hear = func(now time.Time, m protocol.Message) (bool, protocol.Output) {
			c, ok := m.Body.(message.Confirmation)
			if !ok {
				return true, protocol.Output{}
			}
			f.learn(c.Bundle)
			if s.Chance.N(2) == 0 {
				return true, protocol.Output{} // it plays its part now and forges later
			}
			return false, protocol.Output{Send: f.decide(now, c.Bundle)}
		}
	})
	s.Often(2*time.Minute, func() {
		if len(f.known) > 0 {
			f.strike(h, f.known[s.Chance.N(len(f.known))])
		}
	})
}

// forgery owns the bundles that a forger has seen.
type forgery struct {
	s     *market.Stage
	own   *identity.Credential
	known []contract.Verified
}

func (f *forgery) learn(v contract.Verified) {
	if f.known = append(f.known, v); len(f.known) > maxTape {
		f.known = f.known[1:]
	}
}

// as is the forger's key under another agent's name, which its signatures then bear.
func (f *forgery) as(id protocol.AgentID) *identity.Credential {
	c := *f.own
	c.ID = id
	return &c
}

// parties of a bundle.
func parties(b protocol.Bundle) []protocol.AgentID {
	list := []protocol.AgentID{b.User, b.Bank}
	for _, u := range b.Units {
		if !slices.Contains(list, u.Seller) {
			list = append(list, u.Seller)
		}
	}
	return list
}

// decide sends all parties of a bundle a decision that the bank has not made.
func (f *forgery) decide(now time.Time, v contract.Verified) []protocol.Message {
	var list []protocol.Message
	for _, outcome := range []protocol.Outcome{protocol.OutcomeSettled, protocol.OutcomeVoid} {
		for _, bank := range []protocol.AgentID{v.Bundle.Bank, f.own.ID} {
			r := protocol.Receipt{
				Version: contract.ReceiptVersion, Bank: bank, Contract: v.ID, Outcome: outcome, Entry: 1, Time: now, User: v.Bundle.User, Currency: v.Bundle.Currency,
			}
			if outcome == protocol.OutcomeSettled {
				r.Total = v.Bundle.Total
			} else {
				r.Reason = protocol.CodeSettleBy
			}
			der, err := contract.SignReceipt(f.as(bank), r, now)
			if err != nil {
				continue
			}
			d := message.Decision{Contract: v.ID, Outcome: outcome, Reason: r.Reason, Receipt: &contract.VerifiedReceipt{Receipt: r, DER: der}}
			for _, to := range parties(v.Bundle) {
				list = append(list, say(to, protocol.Inform, protocol.ProtocolCommit, v.Bundle.Conversation, d))
			}
		}
	}
	return list
}

// strike sends every forged message about a bundle.
func (f *forgery) strike(h *sim.Host, v contract.Verified) {
	now := h.Now()
	list := f.decide(now, v)
	for _, to := range parties(v.Bundle) {
		list = append(list, f.about(to, now, v)...)
	}
	for _, m := range list {
		playBack(f.s, h, m)
	}
	for _, to := range parties(v.Bundle) {
		f.inject(to, now, v)
	}
}

// about makes the messages about a bundle that only others may send.
func (f *forgery) about(to protocol.AgentID, now time.Time, v contract.Verified) []protocol.Message {
	b, talk := v.Bundle, v.Bundle.Conversation
	list := []protocol.Message{
		say(to, protocol.Request, protocol.ProtocolRequest, talk, message.Annulment{Bundle: v}),
		say(to, protocol.Confirm, protocol.ProtocolCommit, talk, message.Confirmation{Bundle: v}),
	}
	for _, u := range b.Units {
		refund := contract.Refund{Version: contract.NoteVersion, Contract: v.ID, Unit: u.Unit, Seller: u.Seller, Amount: u.Cost}
		if der, err := contract.SignNote(f.as(u.Seller), refund, now); err == nil && u.Seller != f.own.ID {
			note := contract.VerifiedNote[contract.Refund]{Note: refund, DER: der}
			list = append(list, say(to, protocol.Request, protocol.ProtocolRequest, talk, message.RefundRequest{Bundle: v, Signed: note}))
		}
		cancel := contract.Cancel{Version: contract.NoteVersion, Contract: v.ID, Unit: u.Unit, User: b.User, At: now.UTC(), Nonce: "00000000000000000000000000000000"}
		if der, err := contract.SignNote(f.as(b.User), cancel, now); err == nil {
			note := contract.VerifiedNote[contract.Cancel]{Note: cancel, DER: der}
			list = append(list, say(to, protocol.Request, protocol.ProtocolRequest, talk, message.UnitCancellation{Signed: note}))
		}
		list = append(list, say(to, protocol.Cancel, protocol.ProtocolCommit, talk, message.Cancellation{Reservations: []string{u.Reservation}}))
	}
	return append(list, f.copies(to, now, v)...)
}

// copies are countersignatures in the names of all sellers, and a bundle in the name of its user.
func (f *forgery) copies(to protocol.AgentID, now time.Time, v contract.Verified) []protocol.Message {
	var list []protocol.Message
	for _, seller := range v.Sellers() {
		if seller == f.own.ID {
			continue // it may sign this one
		}
		der, err := contract.Countersign(f.as(seller), v, now)
		if err != nil {
			continue
		}
		sale := contract.Sale{Verified: v, Seller: identity.Peer{ID: seller, Chain: f.own.Chain}, Countersigned: now, DER: der}
		list = append(list, say(to, protocol.Request, protocol.ProtocolRequest, v.Bundle.Conversation, message.Settlement{Sale: sale}),
			say(to, protocol.Confirm, protocol.ProtocolCommit, v.Bundle.Conversation, message.Countersigned{Sale: sale}))
	}
	b := v.Bundle
	b.Nonce = "00000000000000000000000000000001"
	der, err := contract.Sign(f.as(b.User), b, now)
	if err != nil {
		return list
	}
	forged := contract.Verified{Bundle: b, User: v.User, DER: der}
	return append(list, say(to, protocol.Confirm, protocol.ProtocolCommit, b.Conversation, message.Confirmation{Bundle: forged}),
		say(to, protocol.Request, protocol.ProtocolRequest, b.Conversation, message.Annulment{Bundle: forged}))
}

// inject sends a message with another agent's name in its sender field, which the transport
// contradicts.
func (f *forgery) inject(to protocol.AgentID, now time.Time, v contract.Verified) {
	m := say(to, protocol.Request, protocol.ProtocolRequest, v.Bundle.Conversation, message.Annulment{Bundle: v})
	m.Sender = v.Bundle.User
	bytes, err := codec.Seal(f.as(v.Bundle.User), m, now)
	if h := f.s.World().Leader(to); err == nil && h != nil {
		f.s.World().Inject(f.own.ID, h, bytes)
	}
}

package adversary

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// The size of a void flood, and the mean time between two.
const (
	voidSize = 64
	voidGap  = 5 * time.Minute

	voidSettle = 20 * time.Second // until their settle-by
)

// voidFlood is a user without money that makes contracts for them to be void: it confirms
// what it has honest sites hold and cannot pay it, and it has the bank void contracts that
// no seller knows, half of them before their settle-by and half of them after it.
func voidFlood(s *market.Stage) {
	cred := s.Cast().Credential(s.Name)
	v := NewVoider(cred, s.Cast().Trust, s.Cast().Terms())
	h := s.Add(sim.Spec{
		Name: s.Name, Credential: cred,
		Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
			return v, protocol.Output{}, nil
		},
	}, 0)
	s.Often(voidGap, func() {
		s.World().Do(h, func(now time.Time) protocol.Output {
			return protocol.Output{Send: append(v.Flood(now, s.Sites()[0], voidSize), v.Call(now, s.Sites()))}
		})
	})
}

// Voider is a user that makes contracts which its bank voids. It accepts every offer,
// confirms what is held, and does not pay.
type Voider struct {
	cred  *identity.Credential
	trust *identity.Trust
	terms protocol.Terms
	made  int
	late  []protocol.Message // requests to void, sent with the next flood

	calls  int // auctions; only the last one counts
	rfq    string
	offers map[string]protocol.Offer // by seller and ID
}

// NewVoider makes one that names a bank and its currency.
func NewVoider(cred *identity.Credential, trust *identity.Trust, terms protocol.Terms) *Voider {
	return &Voider{cred: cred, trust: trust, terms: terms}
}

// Call asks sites for all of their machines.
func (v *Voider) Call(now time.Time, sites []protocol.AgentID) protocol.Message {
	v.calls++
	document := Today(now)
	hash := sha256.Sum256(document)
	v.rfq, v.offers = hex.EncodeToString(hash[:]), map[string]protocol.Offer{}
	return Call(now, v.cred.ID, sites, v.terms, v.conversation(), document)
}

func (v *Voider) conversation() string { return fmt.Sprintf("%s-%d", v.cred.ID.Name(), v.calls) }

// Receive accepts offers and confirms votes.
func (v *Voider) Receive(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.Proposal:
		for _, o := range body.Offers {
			v.offers[string(m.Sender)+o.ID] = o
		}
	case message.Vote:
		o, known := v.offers[string(m.Sender)+body.Offer]
		if !known || m.Conversation != v.conversation() || len(body.Reservations) != len(o.Items) {
			return protocol.Output{}
		}
		b := v.bundle(now, m.Conversation)
		b.RFQ, b.Total = v.rfq, o.Cost
		for i, it := range o.Items {
			b.Units = append(b.Units, protocol.BundleUnit{
				Unit: it.Unit, Seller: m.Sender, Reservation: body.Reservations[i].ID, Slot: it.Slot, Price: it.Price, Cost: it.Cost,
			})
		}
		return protocol.Output{Send: v.signed(now, b, m.Sender, protocol.Confirm)}
	}
	return Hoarder{v.cred.ID, HoardHolds[0]}.Receive(now, m)
}

// Wake has nothing to do.
func (v *Voider) Wake(time.Time) protocol.Output { return protocol.Output{} }

// Flood asks the bank to void n contracts that name a seller, and those of the last flood
// that were to come late.
func (v *Voider) Flood(now time.Time, seller protocol.AgentID, n int) []protocol.Message {
	list := v.late
	v.late = nil
	for i := range n {
		b := v.bundle(now, "")
		b.Total = protocol.Credit
		b.Units = []protocol.BundleUnit{{
			Seller: seller, Reservation: "none", Price: protocol.Credit, Cost: protocol.Credit,
			Slot: protocol.Slot{Start: now.Add(time.Hour).UTC(), End: now.Add(2 * time.Hour).UTC(), Cores: 1},
		}}
		if ask := v.signed(now, b, v.terms.Bank, protocol.Request); i%2 == 0 {
			list = append(list, ask...)
		} else {
			v.late = append(v.late, ask...)
		}
	}
	return list
}

// bundle begins a contract; without a conversation it gets a new one.
func (v *Voider) bundle(now time.Time, conversation string) protocol.Bundle {
	v.made++
	conversation = cmp.Or(conversation, fmt.Sprintf("void-%d", v.made))
	return protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: conversation, User: v.cred.ID, Bank: v.terms.Bank, Currency: v.terms.Currency,
		Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("0", 64), Nonce: fmt.Sprintf("%032x", v.made), SettleBy: now.Add(voidSettle).UTC(),
	}
}

// signed sends a contract to a seller that shall countersign it, or to the bank that shall void it.
func (v *Voider) signed(now time.Time, b protocol.Bundle, to protocol.AgentID, p protocol.Performative) []protocol.Message {
	c, err := contract.SignVerified(v.cred, b, v.trust, now)
	if err != nil {
		panic(fmt.Sprintf("adversary: a void contract: %v", err))
	}
	if p == protocol.Confirm {
		return one(say(to, p, protocol.ProtocolCommit, b.Conversation, message.Confirmation{Bundle: c}))
	}
	return one(say(to, p, protocol.ProtocolRequest, b.Conversation, message.Annulment{Bundle: c}))
}

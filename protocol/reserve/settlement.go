package reserve

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// settlement follows a signed bundle until the bank has decided it and the sellers'
// countersigned copies are there.
//
// The copies are the user's proof of its purchase. They and the bank's receipt
// arrive by different ways, in any order.
type settlement struct {
	cfg      *CoordinatorConfig
	bundle   contract.Verified
	sellers  []protocol.AgentID
	sales    map[protocol.AgentID]contract.Sale
	receipt  *contract.VerifiedReceipt
	copied   bool      // every copy is durable
	voiding  bool      // ask the bank to void, until it decides
	heard    bool      // the bank has answered before settle-by: the network was there
	gaveUp   bool      // because the owner or a seller wants it, not because it is too late
	copiesBy time.Time // when a settled purchase stops waiting for copies
	retryAt  time.Time
	retries  int
	waits    string // why the bank has not decided yet
}

func newSettlement(cfg *CoordinatorConfig, v contract.Verified) *settlement {
	return &settlement{cfg: cfg, bundle: v, sellers: v.Sellers(), sales: map[protocol.AgentID]contract.Sale{}}
}

// copies returns the countersigned copies in order of first unit.
func (s *settlement) copies() []contract.Sale {
	var list []contract.Sale
	for _, id := range s.sellers {
		if sale, ok := s.sales[id]; ok {
			list = append(list, sale)
		}
	}
	return list
}

func (s *settlement) complete() bool { return len(s.sales) == len(s.sellers) }

// names reports whether the bundle contains a reservation of a vote. A Coordinator
// that was resumed does not remember the votes themselves.
func (s *settlement) names(seller protocol.AgentID, v message.Vote) bool {
	return slices.ContainsFunc(s.bundle.Bundle.Units, func(u protocol.BundleUnit) bool {
		return u.Seller == seller && slices.ContainsFunc(v.Reservations, func(r message.Reservation) bool { return r.ID == u.Reservation })
	})
}

func (s *settlement) confirmation(seller protocol.AgentID) protocol.Message {
	m := s.cfg.message(seller, protocol.Confirm, protocol.ProtocolCommit, message.Confirmation{Bundle: s.bundle})
	m.ReplyWith = confirmTag
	m.ReplyBy = s.bundle.Bundle.SettleBy
	return m
}

const confirmTag = "confirm"

// confirmMissing sends the bundle to every seller whose copy is missing.
func (s *settlement) confirmMissing() []protocol.Message {
	var list []protocol.Message
	for _, id := range s.sellers {
		if _, ok := s.sales[id]; !ok {
			list = append(list, s.confirmation(id))
		}
	}
	return list
}

// prepare shows every seller the bundle that is to be confirmed, unless it is forgotten.
func (s *settlement) prepare() (list []protocol.Message) {
	for _, id := range s.sellers {
		list = append(list, s.cfg.message(id, protocol.Inform, protocol.ProtocolRequest, message.BundleCopy{Bundle: s.bundle}))
	}
	return list
}

// askVoid asks the bank to void the bundle, now and at every retry.
func (s *settlement) askVoid() protocol.Output {
	s.voiding = true
	return protocol.Output{Send: []protocol.Message{s.askBank(protocol.Request, "void", message.Annulment{Bundle: s.bundle})}}
}

// giveUp asks the bank to void a bundle that may still be signed.
func (s *settlement) giveUp() protocol.Output {
	s.gaveUp = true
	return s.askVoid()
}

func (s *settlement) askBank(p protocol.Performative, tag string, body protocol.Body) protocol.Message {
	m := s.cfg.message(s.bundle.Bundle.Bank, p, protocol.ProtocolRequest, body)
	m.ReplyWith = tag
	return m
}

// ours reports whether a receipt is for this contract, signed by its bank.
func (s *settlement) ours(r *contract.VerifiedReceipt) bool {
	bank := s.bundle.Bundle.Bank
	return r.Checked() && r.Contract == s.bundle.ID && r.Bank == bank && r.Signer.ID == bank
}

// awaitCopies waits for copies that the bank's receipt has overtaken.
func (s *settlement) awaitCopies(now time.Time, r *contract.VerifiedReceipt) {
	s.receipt, s.voiding = r, false
	s.copiesBy = now.Add(protocol.CopyTimeout)
	s.retries = 0
	s.scheduleRetry(now)
}

// scheduleRetry backs off from RetryFirst to RetryMost.
func (s *settlement) scheduleRetry(now time.Time) {
	s.retryAt = now.Add(backOff(s.retries))
	s.retries++
}

// ask repeats every question that is open before a decision. Once all copies are
// there, it brings them to the bank, in case a seller cannot reach it.
func (s *settlement) ask(now time.Time, deciding bool) []protocol.Message {
	var list []protocol.Message
	if deciding {
		for _, sale := range s.copies() {
			list = append(list, s.askBank(protocol.Request, "", message.Settlement{Sale: sale}))
		}
		return list
	}
	if now.Before(s.bundle.Bundle.SettleBy) {
		list = s.confirmMissing()
	}
	return append(list, s.askBank(protocol.QueryRef, "outcome", message.OutcomeQuery{Contract: s.bundle.ID}))
}

// heed notes what keeps the bank from deciding, before the message takes effect.
func (s *settlement) heed(now time.Time, m protocol.Message) {
	bank := s.bundle.Bundle.Bank
	s.heard = s.heard || m.Sender == bank && now.Before(s.bundle.Bundle.SettleBy)
	switch body := m.Body.(type) {
	case message.Refusal:
		if m.Sender == bank && len(body.Reasons) > 0 {
			s.waits = cmp.Or(body.Reasons[0].Note, string(body.Reasons[0].Code))
		}
	case message.Undeliverable:
		if body.To == bank {
			s.waits = "it cannot be reached"
		}
	case message.Decision:
		if m.Sender == bank {
			s.waits = ""
		}
	}
}

// record is the durable state of the bundle.
func (s *settlement) record(state CoordinatorState, signedAt time.Time) protocol.Record {
	saved := Saved{State: state, Bundle: s.bundle.DER, SignedAt: signedAt}
	for _, sale := range s.copies() {
		saved.Sales = append(saved.Sales, sale.DER)
	}
	if s.receipt != nil {
		saved.Receipt = s.receipt.DER
	}
	return protocol.Record{Table: TableBundles, Key: s.cfg.Conversation, Value: encode(saved)}
}

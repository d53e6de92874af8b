package auction

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A metered request is sold for what its contract can come to. CPUHourCost bounds
// that from above; the contract itself must not bound it below the seller's least
// price, and must promise nothing that the slot cannot keep. Otherwise the refusal
// names a contract that would do (001: a refusal carries 0..n counter-offers, each
// of which would be accepted if it were made now).

// ask is the price at which the seller sells a slot for a request that stands at a
// price, and whether it does.
func (s *Seller) ask(r rfql.Request, slot protocol.Slot, standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	if !r.Metered() {
		return s.cfg.Pricing.Ask(standing, busy, capacity)
	}
	t := s.whole(r, slot)
	price, ok := s.cfg.Pricing.Ask(min(standing, t.Full(slot.Cores)), busy, capacity)
	if !ok || !t.Possible(slot.Cores) {
		return 0, false
	}
	_, least := s.cfg.Pricing.Limits()
	return price, r.Tariff(protocol.Item{Slot: slot, Price: price}).Full(slot.Cores) >= least
}

// whole is a request's contract for a slot, before bids lower it.
func (s *Seller) whole(r rfql.Request, slot protocol.Slot) protocol.Tariff {
	return r.Tariff(protocol.Item{Slot: slot, Price: protocol.MaxCredits})
}

// counter is a request that the seller would accept in place of one whose contract
// it refuses, for the same slot: rates that the slot can reach, and the least Pmax
// that comes to the least price; Qmax, if that is its only price. A contract that will do stays as it is.
func (s *Seller) counter(r rfql.Request, slot protocol.Slot, busy, capacity int) rfql.Request {
	_, least := s.cfg.Pricing.Limits()
	r.Price = max(r.Price, least)
	if _, ok := s.ask(r, slot, r.Price, busy, capacity); ok || !r.Metered() {
		return r
	}
	c := &r.Contract
	most := int64(slot.Cores) * protocol.Core
	c.P, c.Q = reached(c.P, most), reached(c.Q, most)
	hour, err := protocol.Cost(least, slot.Cores, time.Hour)
	switch {
	case err != nil: // dearer than can be paid: there is no contract that would do
	case c.P.Top == 0: // the price of shares is all that it has
		c.Q.Top = max(c.Q.Top, hour)
	default:
		c.P.Top = max(c.P.Top, least-c.Q.Top/protocol.Credits(slot.Cores))
	}
	return r
}

// reached makes a price function one that is at its greatest at a rate of most.
func reached(r protocol.Ramp, most int64) protocol.Ramp {
	r.Hi = min(r.Hi, most)
	if r.Lo >= most { // at its least rate nothing is paid
		r.Lo = most / 2
	}
	return r
}

// tariffOf is the contract of a counter-offer; none if nothing is metered.
func (s *Seller) tariffOf(r rfql.Request, slot protocol.Slot, price protocol.Credits) protocol.Tariff {
	if !r.Metered() {
		return protocol.Tariff{}
	}
	t := s.whole(r, slot)
	t.Prepay = 0
	if cost, err := protocol.Cost(price, slot.Cores, slot.Wall()); err == nil && r.Contract.Prepay {
		t.Prepay = cost
	}
	return t
}

// tooLow is the refusal of a price, or of a contract that comes to less.
func (s *Seller) tooLow(u *sellerUnit, line message.QuoteLine) protocol.Reason {
	_, least := s.cfg.Pricing.Limits()
	r := protocol.Reason{Code: protocol.CodePrice, Asks: least, Hints: s.hintsDearer(u, line)}
	if !u.request.Metered() || line.Standing < least {
		return r
	}
	t := s.whole(u.request, line.Slot)
	r.Term = string(rfql.ContractElement)
	r.Want = fmt.Sprintf("at most %s per core-hour, with %d cores used throughout", t.Full(line.Cores), line.Cores)
	r.Have = fmt.Sprintf("at least %s", least)
	if !t.Possible(line.Cores) {
		r.Want, r.Have = "a promise of more cores than asked for", fmt.Sprintf("%d cores", line.Cores)
	}
	return r
}

package auction

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A metered request pays by its contract, and CPUHourCost caps the price. The contract
// must be able to reach the seller's lowest price, and must not promise more than the
// slot can deliver. Otherwise the refusal names an acceptable contract (001: a refusal
// carries 0..n counter-offers that the seller would accept now).

// ask returns the seller's price for a slot while the request stands at a price, and
// whether it sells at all.
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

// whole returns a request's contract for a slot, before bids lower it.
func (s *Seller) whole(r rfql.Request, slot protocol.Slot) protocol.Tariff {
	return r.Tariff(protocol.Item{Slot: slot, Price: protocol.MaxCredits})
}

// counter returns the request with a contract that the seller would accept for the same
// slot: rates that the slot can reach, and the lowest Pmax that yields the lowest price,
// or Qmax if the contract only has that. It leaves an acceptable contract unchanged.
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
	case err != nil: // too expensive to be paid: no contract is acceptable
	case c.P.Top == 0: // the contract only prices shares
		c.Q.Top = max(c.Q.Top, hour)
	default:
		c.P.Top = max(c.P.Top, least-c.Q.Top/protocol.Credits(slot.Cores))
	}
	return r
}

// reached lowers the rates of a price function so that it peaks at most.
func reached(r protocol.Ramp, most int64) protocol.Ramp {
	r.Hi = min(r.Hi, most)
	if r.Lo >= most { // the lowest rate pays nothing
		r.Lo = most / 2
	}
	return r
}

// tariffOf returns the contract of a counter-offer; zero if the unit is not metered.
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

// tooLow refuses a price, or a contract that yields too little.
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
		r.Want, r.Have = "a promise of more cores than requested", fmt.Sprintf("%d cores", line.Cores)
	}
	return r
}

package auction

import (
	"slices"

	"ramp/protocol"
)

// Tariffs returns the tariffs of the metered units of an offer, at its prices; nil if
// the auction is unknown.
func (s *Sellers) Tariffs(buyer protocol.AgentID, conversation string, o protocol.Offer) map[int]protocol.Tariff {
	e, known := s.live[auctionKey{buyer, conversation}]
	if !known {
		return nil
	}
	seller := e.Value.(*sellerAuction).seller
	var list map[int]protocol.Tariff
	for _, it := range o.Items {
		if it.Unit >= len(seller.units) || !seller.units[it.Unit].request.Metered() {
			continue
		}
		if list == nil {
			list = map[int]protocol.Tariff{}
		}
		list[it.Unit] = seller.units[it.Unit].request.Tariff(it)
	}
	return list
}

// modes reports whether seller and buyer share a settlement mode. A request is metered
// if and only if it has a contract.
func (s *Seller) modes() bool {
	if len(s.units) > 0 && s.units[0].request.Metered() {
		return slices.Contains(s.cfg.Modes, protocol.ModeMetered) && slices.Contains(s.call.Modes, protocol.ModeMetered)
	}
	return slices.ContainsFunc(s.call.Modes, func(m protocol.Mode) bool {
		return m != protocol.ModeMetered && slices.Contains(s.cfg.Modes, m)
	})
}

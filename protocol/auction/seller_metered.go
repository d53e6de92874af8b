package auction

import (
	"slices"

	"ramp/protocol"
)

// Tariffs are what the units of an offer cost at its prices, of those that the
// auction's document wants metered; none for an auction that is not known.
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

// modes reports whether seller and buyer have a settlement mode in common. What
// has a contract is metered and nothing else, and without one nothing is.
func (s *Seller) modes() bool {
	if len(s.units) > 0 && s.units[0].request.Metered() {
		return slices.Contains(s.cfg.Modes, protocol.ModeMetered) && slices.Contains(s.call.Modes, protocol.ModeMetered)
	}
	for _, m := range s.call.Modes {
		if m != protocol.ModeMetered && slices.Contains(s.cfg.Modes, m) {
			return true
		}
	}
	return false
}

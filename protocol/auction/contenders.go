package auction

import (
	"slices"

	"ramp/protocol"
)

// contenders returns the receivers of a further round in a small market; none, if no
// seller can improve on what stands. It leaves out sellers that have nothing left to
// offer, so the result is the same with fewer messages. If those that have are late as
// a rule, it calls everybody: punctual answers end the round. Rounds of fixed length and
// searches for a common start call everybody, too.
func (b *Buyer) contenders(best bool) []protocol.AgentID {
	if b.cfg.NoEarlyClose || b.standing.together.wanted {
		return b.sellers.order
	}
	leaders := b.standing.leaders()
	list := make([]protocol.AgentID, 0, len(b.sellers.order))
	rivals, punctual := 0, 0
	for _, id := range b.sellers.order {
		chance, leads := b.chance(b.sellers.byID[id], id, leaders, best)
		if chance || leads {
			list = append(list, id)
		}
		if chance {
			rivals++
			if b.sellers.timing.Due(id) {
				punctual++
			}
		}
	}
	switch {
	case rivals == 0:
		return nil
	case punctual == 0 && !best:
		return b.sellers.order
	}
	return list
}

// chance reports whether a seller could make a better offer for a unit than those that
// stand, and whether an offer of its own leads for one.
func (b *Buyer) chance(s *bidder, id protocol.AgentID, leaders []protocol.AgentID, best bool) (chance, leads bool) {
	for unit, ceiling := range b.standing.ceilings {
		switch {
		case s.refuses(unit, ceiling, best):
		case !best && leaders[unit] == id:
			leads = true
		default:
			return true, leads
		}
	}
	return s.bundles, leads
}

// show notes the prices that a seller asks. One below the least that it states shows
// that the statement is out of date.
func (b *bidder) show(offers []protocol.Offer) {
	for _, o := range offers {
		b.bundles = b.bundles || len(o.Items) > 1
		for _, it := range o.Items {
			b.least = min(b.least, it.Price)
		}
	}
}

// refuses reports whether a seller has ruled out offers for a unit for the rest of the
// auction: by a term that its machine never meets or that it never accepts, or by a
// least price above the one to beat. The best-offer round lifts prices.
func (b *bidder) refuses(unit int, ceiling protocol.Credits, best bool) bool {
	if !best && b.least > ceiling {
		return true
	}
	return slices.ContainsFunc(b.reasons, func(r protocol.Reason) bool {
		switch {
		case r.Unit != unit && r.Unit != protocol.AllUnits:
			return false
		case r.Code == protocol.CodePrice:
			return !best && r.Asks > ceiling
		}
		return final(r)
	})
}

// final reports whether a refusal is for a reason that lasts as long as the auction. A
// reason without a term, such as too few nodes that can be reserved, may be momentary.
func final(r protocol.Reason) bool {
	always := []protocol.Code{protocol.CodeNoBank, protocol.CodeMode, protocol.CodeProgram}
	named := []protocol.Code{protocol.CodeOS, protocol.CodeOSVersion, protocol.CodeArchitecture, protocol.CodeCPUSpeed, protocol.CodeRAM,
		protocol.CodeDisk, protocol.CodeBandwidth, protocol.CodeSize}
	return slices.Contains(always, r.Code) || r.Term != "" && slices.Contains(named, r.Code)
}

package user

import "ramp/protocol"

// Sizes are what the agent keeps in memory, and the bounds of it.
func (r *Role) Sizes() []protocol.Size {
	list := append(r.timing.Sizes(),
		protocol.Size{Of: "agents known", N: len(r.known), Most: maxSellers},
		protocol.Size{Of: "purchases", N: len(r.purchases), Most: maxPurchases},
		protocol.Size{Of: "purchases in order", N: len(r.order), Most: maxPurchases},
		protocol.Size{Of: "purchases that are over", N: len(r.ended), Most: maxEnded},
		protocol.Size{Of: "purchases that are over, in order", N: len(r.endings), Most: maxEnded},
		protocol.Size{Of: "purchases that are followed", N: r.awaited.len(), Most: maxAwaited},
		protocol.Size{Of: "contracts that are not over", N: r.kept.len(), Most: maxKept},
		protocol.Size{Of: "cancellations", N: len(r.cancels), Most: maxCancels},
		protocol.Size{Of: "units being bought again", N: len(r.lost), Most: maxLost},
	)
	for _, id := range r.order {
		if p := r.purchases[id]; p.coord != nil {
			list = append(list, p.coord.Sizes()...)
		} else if p.buyer != nil {
			list = append(list, p.buyer.Sizes()...)
		}
	}
	return list
}

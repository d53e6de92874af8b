package bank

import "ramp/protocol"

// Sizes are what the agent keeps in memory, and the bounds of it.
func (r *Role) Sizes() []protocol.Size {
	return append(r.ledger.Sizes(),
		protocol.Size{Of: "askers that wait", N: r.waits, Most: maxWaiting},
		protocol.Size{Of: "messages that wait for the store", N: r.parks, Most: maxParked},
	)
}

package resource

import (
	"ramp/agents/resource/calendar"
	"ramp/protocol"
)

// Sizes reports how much the agent keeps in memory, with the bounds.
func (r *Role) Sizes() []protocol.Size {
	list := append(r.sellers.Sizes(), r.promises.Sizes()...)
	list = append(append(list, r.receipts.Sizes()...), r.launches.Sizes()...)
	return append(list,
		protocol.Size{Of: "lines of offers", N: len(r.quotes.items), Most: MaxQuotes},
		protocol.Size{Of: "threads not understood", N: len(r.strange.items), Most: maxStrange},
		protocol.Size{Of: "slots in the calendar", N: r.market.calendar.Len(), Most: calendar.MaxSlots},
		protocol.Size{Of: "promises recorded", N: len(r.record.promises), Most: MaxEnded + calendar.MaxSlots},
	)
}

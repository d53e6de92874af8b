package resource

import (
	"ramp/agents/resource/calendar"
	"ramp/protocol"
)

// Sizes are what the agent keeps in memory, and the bounds of it.
func (r *Role) Sizes() []protocol.Size {
	list := append(r.sellers.Sizes(), r.promises.Sizes()...)
	return append(list,
		protocol.Size{Of: "lines of offers", N: len(r.quotes.items), Most: MaxQuotes},
		protocol.Size{Of: "threads not understood", N: len(r.strange.items), Most: maxStrange},
		protocol.Size{Of: "slots in the calendar", N: r.market.calendar.Len(), Most: calendar.MaxSlots},
		protocol.Size{Of: "promises judged", N: len(r.kept.promises), Most: MaxJudged + calendar.MaxSlots},
	)
}

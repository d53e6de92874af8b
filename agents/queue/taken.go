package queue

import (
	"time"

	"ramp/protocol"
)

// Taken is the most cores that the uses occupy at any instant of a slot. The maximum
// occurs where a use, or the slot, begins.
func Taken(uses []protocol.Slot, slot protocol.Slot) int {
	most := 0
	instants := []time.Time{slot.Start}
	for _, u := range uses {
		if u.Overlaps(slot) && u.Start.After(slot.Start) {
			instants = append(instants, u.Start)
		}
	}
	for _, t := range instants {
		sum := 0
		for _, u := range uses {
			if !t.Before(u.Start) && t.Before(u.End) {
				sum += u.Cores
			}
		}
		most = max(most, sum)
	}
	return most
}

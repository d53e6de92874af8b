package auction

import (
	"slices"
	"time"

	"ramp/protocol"
)

// joint returns the joint capacity for each span of time in which the seller's offers
// add up to more cores than are free. Without spans, all offers can be bought together.
func (s *Seller) joint(cal Calendar) []protocol.Span {
	var few [usualUnits]protocol.Slot // most requests have one unit or a few
	var fewEdges [4 * usualUnits]time.Time
	slots := s.offeredSlots(few[:0])
	if nodes, ok := s.nodesOnly(cal); ok {
		cal = nodes
	}
	instants := edges(fewEdges[:0], slots)
	var spans []protocol.Span
	for i := 0; i+1 < len(instants); i++ {
		start, end := instants[i], instants[i+1]
		free := max(0, cal.Free(start, end))
		if together(slots, start) > free {
			spans = append(spans, protocol.Span{Start: start, End: end, Cores: free})
		}
	}
	return spans
}

// nodesOnly is the calendar of whole nodes, if all units are of such.
func (s *Seller) nodesOnly(cal Calendar) (Calendar, bool) {
	for i := range s.units {
		if r := s.units[i].request; r.Nodes == 0 || r.NodeCores != s.units[0].request.NodeCores {
			return cal, false
		}
	}
	return s.units[0].view(cal)
}

// usualUnits is how many units joint handles without allocating memory.
const usualUnits = 4

// offeredSlots adds the slots of all offers to slots, with both offers of a unit that
// apart has moved.
func (s *Seller) offeredSlots(slots []protocol.Slot) []protocol.Slot {
	for i := range s.units {
		u := &s.units[i]
		if o := u.offer; o != nil {
			slots = append(slots, o.Items[0].Slot)
			if n := len(u.before); o.Group != "" && n > 0 {
				slots = append(slots, u.before[n-1].Items[0].Slot)
			}
		}
		if u.joint != nil {
			slots = append(slots, u.joint.Items[0].Slot)
		}
	}
	return slots
}

// edges returns the distinct starts and ends of the slots in order, in the memory of
// the empty list.
func edges(list []time.Time, slots []protocol.Slot) []time.Time {
	for _, s := range slots {
		list = append(list, s.Start, s.End)
	}
	slices.SortFunc(list, time.Time.Compare)
	return slices.CompactFunc(list, time.Time.Equal)
}

// together returns the cores that the slots take at t.
func together(slots []protocol.Slot, t time.Time) int {
	cores := 0
	for _, s := range slots {
		if !t.Before(s.Start) && t.Before(s.End) {
			cores += s.Cores
		}
	}
	return cores
}

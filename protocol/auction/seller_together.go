package auction

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// jointly adds offers at the first start that this seller can give to all units, if it cannot give
// the ones offered together. Those stay valid: other sellers may have the rest.
func (s *Seller) jointly(lines []message.QuoteLine, now time.Time, best bool, cal Calendar) []message.QuoteLine {
	if slices.ContainsFunc(s.units, func(u sellerUnit) bool { return u.offer == nil }) {
		return lines
	}
	if len(s.joint(cal)) == 0 && s.oneStart() {
		return lines
	}
	start, ok := s.jointStart(now, best, cal)
	if !ok {
		return lines
	}
	for i := range s.units {
		u := &s.units[i]
		slot := u.offer.Items[0].Slot
		slot.Start, slot.End = start, start.Add(slot.Wall())
		if o := u.joint; o != nil && o.Items[0].Slot.Start.Equal(start) && s.holds(now, *o, cal) {
			if s.again {
				lines = append(lines, message.QuoteLine{Unit: i, Cores: slot.Cores, Slot: o.Items[0].Slot, Offer: o})
			}
			continue
		}
		first := u.offer
		u.offer = u.joint // so that the new one replaces it
		line := s.offerAside(now, u, message.QuoteLine{Unit: i, Cores: slot.Cores, Standing: u.ceiling}, slot, cal)
		if line.Offer != nil {
			lines = append(lines, line)
		}
		u.offer, u.joint = first, u.offer
	}
	return lines
}

// oneStart reports whether all units are offered at the same start.
func (s *Seller) oneStart() bool {
	start := func(u sellerUnit) time.Time { return u.offer.Items[0].Slot.Start }
	return !slices.ContainsFunc(s.units, func(u sellerUnit) bool { return !start(u).Equal(start(s.units[0])) })
}

// jointStart is the first start in all windows with the cores of all units free for the
// longest of them.
func (s *Seller) jointStart(now time.Time, best bool, cal Calendar) (time.Time, bool) {
	var all window
	slots := make([]protocol.Slot, len(s.units))
	for i := range s.units {
		u := &s.units[i]
		w, ok := s.window(now, u, best)
		if !ok {
			return time.Time{}, false
		}
		slots[i] = u.offer.Items[0].Slot
		all.earliest = protocol.Later(all.earliest, w.earliest)
		all.latest = protocol.Earlier(all.latest, w.latest)
		all.wall = max(all.wall, w.wall)
	}
	if whole, ok := s.nodesOnly(cal); ok {
		cal = whole
	}
	cores := 0
	for _, slot := range slots {
		cores += slot.Cores
	}
	if all.latest.Before(all.earliest) {
		return time.Time{}, false
	}
	return cal.Earliest(cores, all.wall, all.earliest, all.latest)
}

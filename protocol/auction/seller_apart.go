package auction

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// apart makes second offers in the best-offer round, when no set of the first ones covers
// the request. Each unit was offered the earliest slot that fits, as if it were alone.
// If its cores are needed for other units, apart offers a later slot that fits beside
// them. The first offer stays valid.
func (s *Seller) apart(now time.Time, lines []message.QuoteLine, cal Calendar) {
	if len(s.units) < 2 || len(s.joint(cal)) == 0 {
		return
	}
	var taken []protocol.Slot
	for _, i := range s.byMargin(now, lines) {
		u := &s.units[lines[i].Unit]
		slot := u.offer.Items[0].Slot
		cal, _ := u.view(cal) // it has made an offer
		if !fitsBeside(taken, slot, cal) {
			aside, ok := s.aside(now, u, slot, taken, cal)
			if !ok {
				continue
			}
			lines[i] = s.offerAside(now, u, lines[i], aside, cal)
			slot = aside
		}
		taken = append(taken, slot)
	}
}

// byMargin returns the lines of units with an offer, the least movable first.
func (s *Seller) byMargin(now time.Time, lines []message.QuoteLine) []int {
	var list []int
	margin := make([]time.Duration, len(lines))
	for i, l := range lines {
		u := &s.units[l.Unit]
		if w, _ := s.window(now, u, false); u.offer != nil {
			margin[i] = w.latest.Sub(w.earliest)
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(margin[i], margin[j]) })
	return list
}

// aside finds a slot for a unit beside the taken ones, in its window or else after it. It
// tries the ends of the taken ones.
func (s *Seller) aside(now time.Time, u *sellerUnit, slot protocol.Slot, taken []protocol.Slot, cal Calendar) (protocol.Slot, bool) {
	for _, best := range []bool{false, true} {
		w, ok := s.window(now, u, best)
		if !ok || w.wall != slot.Wall() {
			continue
		}
		for from, tries := w.earliest, 0; tries <= len(taken); tries++ {
			start, ok := cal.Earliest(slot.Cores, w.wall, from, w.latest)
			if !ok {
				break
			}
			found := protocol.Slot{Start: start, End: start.Add(w.wall), Cores: slot.Cores, Nodes: slot.Nodes}
			if fitsBeside(taken, found, cal) {
				return found, true
			}
			if from = nextEnd(taken, found); from.After(w.latest) {
				break
			}
		}
	}
	return protocol.Slot{}, false
}

// fitsBeside reports whether a slot fits beside the taken ones.
func fitsBeside(taken []protocol.Slot, slot protocol.Slot, cal Calendar) bool {
	instants := edges(nil, append(taken[:len(taken):len(taken)], slot))
	for i := 0; i+1 < len(instants); i++ {
		start, end := instants[i], instants[i+1]
		if start.Before(slot.Start) || !start.Before(slot.End) {
			continue
		}
		if together(taken, start)+slot.Cores > cal.Free(start, end) {
			return false
		}
	}
	return true
}

// nextEnd returns the first end of the taken slots that overlap with a slot.
func nextEnd(taken []protocol.Slot, slot protocol.Slot) (next time.Time) {
	for _, t := range taken {
		if t.Start.Before(slot.End) && t.End.After(slot.Start) {
			next = protocol.Earlier(next, t.End)
		}
	}
	return next
}

// offerAside offers a unit another slot, below the price that stands if possible. The
// offer has its own group, so that it replaces nothing.
func (s *Seller) offerAside(now time.Time, u *sellerUnit, line message.QuoteLine, slot protocol.Slot, cal Calendar) message.QuoteLine {
	line.Slot, line.Reason = slot, nil
	line.Busy, line.Capacity = cal.Load(slot.Start)
	lower := s.price(now, u, line, false)
	if lower.Offer == nil {
		lower = s.price(now, u, line, true)
	}
	if lower.Offer != nil {
		lower.Offer.Group = "aside-" + strconv.Itoa(line.Unit)
	}
	return lower
}

package auction

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// quote decides on one unit, in the order static terms, bank, settlement mode, program,
// window, calendar, price. It adds one line, or one for each static term that fails.
func (s *Seller) quote(lines []message.QuoteLine, now time.Time, i int, best bool, cal Calendar) []message.QuoteLine {
	u := &s.units[i]
	line := message.QuoteLine{Unit: i, Cores: u.request.Cores, Standing: u.ceiling}
	if len(u.static) > 0 {
		return s.refuseStatic(lines, now, u, line, cal)
	}
	if r, ok := s.compatible(); !ok {
		return append(lines, line.Refuse(r))
	}
	cal, ok := u.view(cal)
	if !ok {
		note := fmt.Sprintf("no whole nodes of %d cores can be reserved here", u.request.NodeCores)
		return append(lines, line.Refuse(protocol.Reason{Code: protocol.CodeSize, Note: note}))
	}
	w, ok := s.window(now, u, best)
	if !ok {
		r := protocol.Reason{Code: protocol.CodeWindow, Note: w.note, Hints: s.hintsLater(now, u, cal)}
		return append(lines, line.Refuse(r))
	}
	return append(lines, s.place(now, u, line, w, best, cal))
}

// view is the calendar for a unit; false: the machine cannot reserve its nodes.
func (u *sellerUnit) view(cal Calendar) (Calendar, bool) {
	if u.request.Nodes == 0 {
		return cal, true
	}
	if n, ok := cal.(NodeCalendar); ok {
		return n.Whole(u.request.NodeCores)
	}
	return nil, false
}

// refuseStatic adds one line for each static term that fails.
func (s *Seller) refuseStatic(lines []message.QuoteLine, now time.Time, u *sellerUnit, line message.QuoteLine, cal Calendar) []message.QuoteLine {
	for _, r := range u.static {
		r.Hints = s.hintsSmaller(now, u, cal)
		lines = append(lines, line.Refuse(r))
	}
	return lines
}

// compatible reports whether seller and buyer share a bank, a currency and a settlement
// mode, and the buyer's program would run here.
func (s *Seller) compatible() (protocol.Reason, bool) {
	if !slices.ContainsFunc(s.call.Terms, func(t protocol.Terms) bool { return slices.Contains(s.cfg.Terms, t) }) {
		return protocol.Reason{Code: protocol.CodeNoBank, Note: "no bank and currency in common"}, false
	}
	if !s.modes() {
		return protocol.Reason{Code: protocol.CodeMode, Note: "wanted " + protocol.ModeWords(s.call.Modes) + "; this site takes " + protocol.ModeWords(s.cfg.Modes)}, false
	}
	if s.objection != nil {
		return *s.objection, false
	}
	return protocol.Reason{}, true
}

// place finds the earliest slot in the window and asks the price for it.
func (s *Seller) place(now time.Time, u *sellerUnit, line message.QuoteLine, w window, best bool, cal Calendar) message.QuoteLine {
	if o := u.offer; o != nil && s.holds(now, *o, cal) && !o.Items[0].Slot.Start.Before(s.start) && (best || !s.beaten(u, cal)) {
		line.Slot = o.Items[0].Slot
		if s.again {
			line.Offer = o
			return line
		}
		return line.Refuse(protocol.Reason{Code: protocol.CodeStands, Asks: o.Items[0].Price})
	}
	start, ok := cal.Earliest(line.Cores, w.wall, w.earliest, w.latest)
	if !ok {
		r := busy(now.Add(s.cfg.Horizon), line.Cores, w, cal)
		r.Hints = s.hintsBusy(now, u, w, r.Free, cal)
		return line.Refuse(r)
	}
	line.Slot = protocol.Slot{Start: start, End: start.Add(w.wall), Cores: line.Cores, Nodes: u.request.Nodes}
	line.Busy, line.Capacity = cal.Load(start)
	return s.price(now, u, line, best)
}

// beaten reports whether a unit's offer is above the price that stands, or tied and the
// seller can go lower.
func (s *Seller) beaten(u *sellerUnit, cal Calendar) bool {
	it := u.offer.Items[0]
	if it.Price != u.ceiling || !u.tied {
		return it.Price > u.ceiling
	}
	busy, capacity := cal.Load(it.Slot.Start)
	ask, ok := s.ask(u.request, it.Slot, u.ceiling, busy, capacity)
	return ok && ask < it.Price
}

// price makes the offer, unless the request stands below the least price.
func (s *Seller) price(now time.Time, u *sellerUnit, line message.QuoteLine, best bool) message.QuoteLine {
	if best { // the ceilings are lifted: as if the request came again with one that suffices
		start, least := s.cfg.Pricing.Limits()
		line.Standing = min(start, max(u.request.Price, least))
	}
	ask, ok := s.ask(u.request, line.Slot, line.Standing, line.Busy, line.Capacity)
	if !ok {
		return line.Refuse(s.tooLow(u, line))
	}
	cost, err := protocol.Cost(ask, line.Slot.Cores, line.Slot.Wall())
	if err != nil || cost <= 0 || cost > clearing.MaxOfferCost {
		return line.Refuse(protocol.Reason{Code: protocol.CodeLimit, Note: "the cost is too small or too large to be paid"})
	}
	var idle protocol.Credits
	if u.request.Metered() {
		idle = cost / 100 * protocol.Credits(s.cfg.Idle)
	}
	u.offers++
	line.Offer = &protocol.Offer{
		ID:         "u" + strconv.Itoa(line.Unit) + "-" + strconv.Itoa(u.offers),
		Items:      []protocol.Item{{Unit: line.Unit, Slot: line.Slot, Price: ask, Cost: cost, Least: idle}},
		Cost:       cost,
		ValidUntil: now.Add(s.cfg.Validity),
	}
	u.replace(line.Offer)
	return line
}

// holds reports whether an earlier offer could still be accepted.
func (s *Seller) holds(now time.Time, o protocol.Offer, cal Calendar) bool {
	slot := o.Items[0].Slot
	return o.ValidUntil.After(now) && slot.Start.After(now) && cal.Free(slot.Start, slot.End) >= slot.Cores
}

// busy refuses for lack of cores. Free is the most cores free for the wall time
// anywhere in the window, Start the first start beyond it.
func busy(horizon time.Time, cores int, w window, cal Calendar) protocol.Reason {
	r := protocol.Reason{Code: protocol.CodeBusy, Free: mostFree(cores, w, cal)}
	if start, ok := cal.Earliest(cores, w.wall, w.earliest, horizon); ok {
		r.Start = start
	}
	return r
}

// mostFree bisects: if n cores fit somewhere, fewer do.
func mostFree(cores int, w window, cal Calendar) int {
	if !w.latest.After(w.earliest) {
		return max(0, cal.Free(w.earliest, w.earliest.Add(w.wall)))
	}
	fit, tooMany := 0, cores
	for fit+1 < tooMany {
		n := fit + (tooMany-fit)/2
		if _, ok := cal.Earliest(n, w.wall, w.earliest, w.latest); ok {
			fit = n
		} else {
			tooMany = n
		}
	}
	return fit
}

package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A refusal carries hints: offers that the seller would make if the ceiling, the end,
// the cores or the contract of the request were those of the hint. Following a hint
// yields an offer while the machine's load stays the same. Hints compare with the
// request's own ceiling, not with other sellers' bids.

// hintsBusy returns a later start, and fewer cores within the window.
func (s *Seller) hintsBusy(now time.Time, u *sellerUnit, w window, free int, cal Calendar) []protocol.Hint {
	hints := s.hintsLater(now, u, cal)
	if n := min(free, u.request.Cores-1); n > 0 && u.request.Nodes == 0 {
		hints = s.hintAt(hints, u, n, w, cal)
	}
	return hints
}

// hintsLater returns the first slot for the whole request beyond its end. It respects
// Lead, so that any later end finds the same slot.
func (s *Seller) hintsLater(now time.Time, u *sellerUnit, cal Calendar) []protocol.Hint {
	w := window{
		earliest: protocol.Later(u.request.NotBefore, second(now.Add(s.cfg.Lead))),
		latest:   now.Add(s.cfg.Horizon - u.request.Wall), wall: u.request.Wall,
	}
	if w.latest.Before(w.earliest) || s.tooLong(w.wall) {
		return nil
	}
	return s.hintAt(nil, u, u.request.Cores, w, cal)
}

// hintsSmaller returns the most cores in the window, if the machine is only too small.
func (s *Seller) hintsSmaller(now time.Time, u *sellerUnit, cal Calendar) []protocol.Hint {
	only := len(u.static) == 1 && u.static[0].Code == protocol.CodeSize && u.request.Nodes == 0
	if _, deals := s.compatible(); !only || !deals {
		return nil
	}
	w, ok := s.window(now, u, false)
	if !ok {
		return nil
	}
	n := mostFree(s.cfg.Properties.Cores+1, w, cal)
	if n < 1 {
		return nil
	}
	return s.hintAt(nil, u, n, w, cal)
}

// hintsDearer returns the slot found, at the lowest price, if that exceeds the request's
// own ceiling.
func (s *Seller) hintsDearer(u *sellerUnit, line message.QuoteLine) []protocol.Hint {
	if s.counter(u.request, line.Slot, line.Busy, line.Capacity) == u.request {
		return nil // the request is acceptable, but others ask less
	}
	return s.hint(nil, u.request, line.Slot, line.Busy, line.Capacity)
}

// hintAt adds the first slot for n cores in a window to hints.
func (s *Seller) hintAt(hints []protocol.Hint, u *sellerUnit, n int, w window, cal Calendar) []protocol.Hint {
	start, ok := cal.Earliest(n, w.wall, w.earliest, w.latest)
	if !ok {
		return hints
	}
	busy, capacity := cal.Load(start)
	return s.hint(hints, u.request, protocol.Slot{Start: start, End: start.Add(w.wall), Cores: n, Nodes: u.request.Nodes}, busy, capacity)
}

// hint adds a slot at the seller's price, unless that cannot be paid.
func (s *Seller) hint(hints []protocol.Hint, r rfql.Request, slot protocol.Slot, busy, capacity int) []protocol.Hint {
	r = s.counter(r, slot, busy, capacity)
	ask, ok := s.ask(r, slot, r.Price, busy, capacity)
	if !ok {
		return hints
	}
	if cost, err := protocol.Cost(ask, slot.Cores, slot.Wall()); err != nil || cost <= 0 {
		return hints
	}
	return append(hints, protocol.Hint{Start: slot.Start, Cores: slot.Cores, Price: ask, Tariff: s.tariffOf(r, slot, ask)})
}

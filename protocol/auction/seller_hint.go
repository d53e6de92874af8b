package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// What a refusal says would have been offered. Every hint is the answer to the
// request with its ceiling, its end, its cores or its contract changed to those of
// the hint, and nothing else: following it is met by an offer, as long as the machine stays as
// it is. The request's own ceiling counts, not what others bid by now.

// hintsBusy are a later start, and fewer cores within the window.
func (s *Seller) hintsBusy(now time.Time, u *sellerUnit, w window, free int, cal Calendar) []protocol.Hint {
	hints := s.hintsLater(now, u, cal)
	if n := min(free, u.request.Cores-1); n > 0 && u.request.Nodes == 0 {
		hints = s.would(hints, u, n, w, cal)
	}
	return hints
}

// hintsLater is the first slot of the whole request if its end does not bind. It
// leaves room for Lead, so that a later end than that slot's finds it too.
func (s *Seller) hintsLater(now time.Time, u *sellerUnit, cal Calendar) []protocol.Hint {
	w := window{
		earliest: later(u.request.NotBefore, second(now.Add(s.cfg.Lead))),
		latest:   now.Add(s.cfg.Horizon - u.request.Wall), wall: u.request.Wall,
	}
	if w.latest.Before(w.earliest) || s.tooLong(w.wall) {
		return nil
	}
	return s.would(nil, u, u.request.Cores, w, cal)
}

// hintsSmaller is the most cores in the window, if only the size of the machine
// is in the way.
func (s *Seller) hintsSmaller(now time.Time, u *sellerUnit, cal Calendar) []protocol.Hint {
	only := len(u.static) == 1 && u.static[0].Code == protocol.CodeSize && u.request.Nodes == 0
	if _, deals := s.deals(); !only || !deals {
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
	return s.would(nil, u, n, w, cal)
}

// hintsDearer is the slot that was found, at the least price, if that is above
// the request's own ceiling.
func (s *Seller) hintsDearer(u *sellerUnit, line message.QuoteLine) []protocol.Hint {
	if s.counter(u.request, line.Slot, line.Busy, line.Capacity) == u.request {
		return nil // the request would do; others ask less
	}
	return s.hint(nil, u.request, line.Slot, line.Busy, line.Capacity)
}

// would adds the first slot for n cores in a window to hints.
func (s *Seller) would(hints []protocol.Hint, u *sellerUnit, n int, w window, cal Calendar) []protocol.Hint {
	start, ok := cal.Earliest(n, w.wall, w.earliest, w.latest)
	if !ok {
		return hints
	}
	busy, capacity := cal.Load(start)
	return s.hint(hints, u.request, protocol.Slot{Start: start, End: start.Add(w.wall), Cores: n}, busy, capacity)
}

// hint adds a slot at the price that it would be offered for, unless that cannot
// be paid.
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

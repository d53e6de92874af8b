package resource

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Status reports the agent's state to its owner.
func (r *Role) Status(now time.Time) message.ResourceStatus {
	s := message.ResourceStatus{
		Agent: r.self, At: now, Sales: message.SalesOpen,
		Queue: r.market.status(now), Slots: r.slots(now), Unbought: r.unbought(now), Banks: r.banks.status(now), Forecast: r.learner.status(),
		Federation: Shortage(r, now),
	}
	_, sold := r.launches.Open("") // they run in reservations, which batch systems do not count
	s.Queue.Running += sold
	if r.market.optimistic != nil {
		s.Forecast.Overbook = r.record.status()
	}
	if p, ok := r.paused(now); ok {
		s.Sales, s.Why, s.Since = message.SalesPaused, p.why, p.since
		if p.code == protocol.CodeDraining {
			s.Sales = message.SalesDrained
		}
	}
	return s
}

// status is the last reported state of the batch system.
func (k *market) status(now time.Time) message.QueueStatus {
	s := message.QueueStatus{State: "up", Told: k.heard, Running: k.running, Queued: k.queued}
	if k.known {
		s.Busy, s.Capacity = k.Load(now)
	}
	switch p, ok := k.paused(now); {
	case ok && k.down == nil && !k.known:
		s.State, s.Why = "unknown", p.why
	case ok:
		s.State, s.Why, s.Since = "down", p.why, p.since
	}
	return s
}

func (r *Role) slots(now time.Time) message.SlotStatus {
	s := message.SlotStatus{Unknown: r.promises.Strangers(), Owed: r.promises.Owed()}
	for _, l := range r.promises.Reservations() {
		switch reserve.ClaimState(l.State) {
		case reserve.ClaimReserving, reserve.ClaimHeld:
			s.Held++
		case reserve.ClaimCountersigned:
			s.InDoubt++
		case reserve.ClaimBroken:
			s.Broken++
		case reserve.ClaimSold:
			countSold(&s, now, l.Slot)
		}
	}
	return s
}

// maxUnbought is how many buyers a status shows.
const maxUnbought = 5

// unbought lists the buyers that have held the most and not bought it.
func (r *Role) unbought(now time.Time) []message.Unbought {
	var shown []message.Unbought
	list, allowance := r.promises.Unbought(now, maxUnbought)
	for _, u := range list {
		shown = append(shown, message.Unbought{Buyer: u.Buyer, CoreHours: float64(u.CoreSeconds) / 3600, Allowance: float64(allowance) / 3600})
	}
	return shown
}

// countSold counts a sold slot that is not over.
func countSold(s *message.SlotStatus, now time.Time, slot protocol.Slot) {
	if !slot.End.After(now) {
		return
	}
	s.Sold++
	s.CoreHours += float64(slot.Cores) * slot.Wall().Hours()
	if slot.Start.After(now) {
		s.Next = protocol.Earlier(s.Next, slot.Start)
	} else {
		s.Begun++
	}
	s.LastEnds = protocol.Later(s.LastEnds, slot.End)
}

// LoadOf is how much of a site's machine is allocated an hour from now, for an index: in
// eighths, rounded down, at most message.MaxLoad. One whose load is unknown counts as full.
func LoadOf(r *Role, now time.Time) int {
	busy, capacity := r.market.Load(now.Add(time.Hour))
	if !r.market.known || capacity == 0 {
		return message.MaxLoad
	}
	return min(busy*(message.MaxLoad+1)/capacity, message.MaxLoad)
}

// Calendar is how n pieces of time, each of a step, are used. What several jobs do one after
// the other in a piece counts as if they were beside each other.
func Calendar(r *Role, from time.Time, step time.Duration, n int) []message.CalendarBin {
	_, capacity := r.market.Load(from)
	bins := make([]message.CalendarBin, n)
	for i := range bins {
		start := from.Add(time.Duration(i) * step)
		bins[i] = message.CalendarBin{Start: start, End: start.Add(step), Free: min(capacity, r.market.Free(start, start.Add(step))), Capacity: capacity}
	}
	for _, l := range r.promises.Reservations() {
		for i := range bins {
			if b := &bins[i]; l.Slot.Start.Before(b.End) && b.Start.Before(l.Slot.End) {
				switch reserve.ClaimState(l.State) {
				case reserve.ClaimReserving, reserve.ClaimHeld, reserve.ClaimCountersigned:
					b.Held += l.Slot.Cores
				case reserve.ClaimSold:
					b.Sold += l.Slot.Cores
				}
			}
		}
	}
	for i := range bins {
		b := &bins[i]
		b.Sold = min(b.Sold, capacity-b.Free)
		b.Held = min(b.Held, capacity-b.Free-b.Sold)
		b.Other = capacity - b.Free - b.Sold - b.Held
	}
	return bins
}

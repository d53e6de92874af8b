package auction

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/rfql"
)

// Want is the buyer's demand for one unit.
type Want struct {
	Ceiling   protocol.Credits // per core-hour
	NotBefore time.Time        // zero: from now on
	LastStart time.Time        // zero: none; the buyer's own limit, which sellers do not see
	End       time.Time
	Wall      time.Duration
	Cores     int
	Nodes     int           // whole ones; zero: any cores
	Contract  rfql.Contract // zero: the unit is not metered
}

// wants are the demands of a request, by unit. They judge single offers.
type wants []Want

// answered reports whether an offer is for requested units, in the right size, and priced
// consistently. In the best-offer round, prices and ends may break the request's terms.
func (ws wants) answered(now time.Time, o protocol.Offer, best bool) bool {
	if len(o.Items) == 0 || o.Cost <= 0 || o.Cost > clearing.MaxOfferCost || o.ID == "" || !o.ValidUntil.After(now) {
		return false
	}
	seen := map[int]bool{}
	var sum protocol.Credits
	for _, it := range o.Items {
		if it.Unit < 0 || it.Unit >= len(ws) || seen[it.Unit] || !ws[it.Unit].fits(now, it, best) {
			return false
		}
		seen[it.Unit] = true
		var err error
		if sum, err = sum.Add(it.Cost); err != nil {
			return false
		}
	}
	return o.Cost == sum
}

// fits reports whether an item has a slot for its unit.
func (w Want) fits(now time.Time, it protocol.Item, best bool) bool {
	cost, err := protocol.Cost(it.Price, it.Slot.Cores, it.Slot.Wall())
	switch {
	case err != nil || it.Price <= 0 || it.Cost <= 0 || it.Cost > cost:
		return false
	case it.Least < 0 || it.Least > it.Cost/2 || it.Least > 0 && w.Contract == (rfql.Contract{}):
		return false
	case it.Slot.Validate() != nil || it.Slot.Cores != w.Cores || it.Slot.Nodes != w.Nodes || it.Slot.Wall() < w.Wall:
		return false
	case it.Slot.Start.Before(w.NotBefore) || it.Slot.Start.Before(now):
		return false
	}
	return best || !it.Slot.End.After(w.End)
}

// late reports whether an offer starts later than the buyer may wait. Sellers do
// not know that limit, and will not offer another slot.
func (ws wants) late(o protocol.Offer) bool {
	return slices.ContainsFunc(o.Items, func(it protocol.Item) bool {
		last := ws[it.Unit].LastStart
		return !last.IsZero() && it.Slot.Start.After(last)
	})
}

func (ws wants) withinCeilings(o protocol.Offer) bool {
	return !slices.ContainsFunc(o.Items, func(it protocol.Item) bool { return it.Price > ws[it.Unit].Ceiling })
}

// violations counts the terms that an offer breaks, and sums the excess in per
// mille of the request: price over the ceiling, lateness over the wall time.
func (ws wants) violations(o protocol.Offer) (count, excess int) {
	for _, it := range o.Items {
		w := ws[it.Unit]
		if it.Price > w.Ceiling {
			count++
			excess += perMille(int64(it.Price-w.Ceiling), int64(w.Ceiling))
		}
		if late := w.lateness(it); late > 0 {
			count++
			excess += perMille(int64(late), int64(max(w.Wall, time.Minute)))
		}
	}
	return count, min(excess, clearing.MaxExcess)
}

// lateness returns how far an item ends or starts after the requested limits.
func (w Want) lateness(it protocol.Item) time.Duration {
	late := max(0, it.Slot.End.Sub(w.End))
	if !w.LastStart.IsZero() {
		late = max(late, it.Slot.Start.Sub(w.LastStart))
	}
	return late
}

// perMille rounds up, so that any excess counts, and caps at 10⁶ ‰.
func perMille(part, whole int64) int {
	const most = 1_000_000
	if whole <= 0 || part/whole >= most/1000 {
		return most
	}
	if part > 1<<50 { // both shrink; the ratio stays
		part, whole = part>>10, max(1, whole>>10)
	}
	return int((part*1000 + whole - 1) / whole)
}

package auction

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Units that must begin together are bought in two steps. The buyer first searches for a start: it
// calls for offers that begin at a time or as soon as possible after it. The sellers' first starts
// bound the common one from below, so the next call asks for the latest among the first starts of
// all units, until a set of offers begins together. The usual rounds then bid for that start.

// maxSearch bounds the extra rounds that search for a start.
const maxSearch = 16

// commonStart is that of an auction whose units begin together.
type commonStart struct {
	wanted bool
	start  time.Time // asked for; zero: any
	found  bool      // a set of offers begins then
	calls  int       // extra ones so far
}

func (t *commonStart) searches() bool { return t.wanted && !t.found }

// from is the start for the next call; zero: any.
func (t *commonStart) from() time.Time {
	if !t.wanted {
		return time.Time{}
	}
	return t.start
}

// restart searches anew, from the latest of the requested starts.
func (t *commonStart) restart(ws wants) {
	t.start, t.found = time.Time{}, false
	for _, w := range ws {
		t.start = protocol.Later(t.start, w.NotBefore)
	}
}

// Apart reports whether every unit has an offer, but none begins when the others do.
func (b *Buyer) Apart() bool {
	_, lacking := b.Explain().offering()
	return b.standing.together.searches() && len(lacking) == 0
}

// search ends a round that has searched for the common start. It returns true if another
// call may find one.
func (b *Buyer) search(now time.Time) bool {
	t := &b.standing.together
	if !t.searches() {
		return false
	}
	relaxed := b.state == BestOffer
	if set, ok := b.solve(now, nil, nil, relaxed); ok {
		b.standing.agree(set.Chosen[0].Offer.Items[0].Slot.Start)
		return false
	}
	next := b.nextStart(now, relaxed)
	if next.IsZero() || t.calls == maxSearch {
		return false
	}
	t.start = next
	t.calls++
	return true
}

// agree makes the offers that begin at the start the ones to beat.
func (s *standing) agree(start time.Time) {
	s.together.start, s.together.found = start, true
	clear(s.single)
	for i, w := range s.wants {
		s.ceilings[i] = w.Ceiling
	}
	for _, bid := range s.bids {
		if !s.together.fits(bid.Offer) || s.last(bid.Seller) {
			continue
		}
		if len(bid.Offer.Items) == 1 {
			s.single[bid.Offer.Items[0].Unit] = true
		}
		s.lowerCeilings(bid.Offer, unitKey(bid.Offer))
	}
}

// fits reports whether an offer begins at the start that was found.
func (t *commonStart) fits(o protocol.Offer) bool {
	return t.found && !slices.ContainsFunc(o.Items, func(it protocol.Item) bool { return !it.Slot.Start.Equal(t.start) })
}

// nextStart is the earliest start that the offers leave possible: the latest of the units'
// first starts. If every unit has an offer at the start asked for, but they exclude each
// other, it is the next start that any offer has. Zero: no such start.
func (b *Buyer) nextStart(now time.Time, relaxed bool) (next time.Time) {
	asked := b.standing.together.start
	first := make([]time.Time, len(b.cfg.Wants))
	var after time.Time
	for _, bid := range b.standing.live(now, nil, nil) {
		if bid = b.weigh(bid); !relaxed && bid.Violations > 0 {
			continue
		}
		for _, it := range bid.Offer.Items {
			if it.Slot.Start.Before(asked) {
				continue
			}
			first[it.Unit] = protocol.Earlier(first[it.Unit], it.Slot.Start)
			if it.Slot.Start.After(asked) {
				after = protocol.Earlier(after, it.Slot.Start)
			}
		}
	}
	for _, start := range first {
		if start.IsZero() {
			return time.Time{}
		}
		next = protocol.Later(next, start)
	}
	if next.Equal(asked) {
		return after
	}
	return next
}

package auction_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A seller whose machine is free one day offers slots in the best-offer round that can be
// bought together. Its first offers still stand, and its joint capacity covers any
// choice among all of them.
func TestBestOffersOfOneSellerFitTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newStand()
		for range rapid.IntRange(0, 8).Draw(t, "hours") {
			w.cal.free = append(w.cal.free, rapid.IntRange(0, 100).Draw(t, "free"))
		}
		n := rapid.IntRange(1, 8).Draw(t, "units")
		for range n {
			from, hours := rapid.IntRange(13, 16).Draw(t, "from"), rapid.IntRange(1, 6).Draw(t, "hours")
			w.units = append(w.units, fmt.Sprintf("50 %d:00 %d:00 %d %d", from, from+hours,
				rapid.IntRange(1, hours).Draw(t, "wall")*60, rapid.IntRange(1, 60).Draw(t, "cores")))
		}
		made := make([][]protocol.Slot, n) // by unit
		var spans []protocol.Span
		for round := 1; round <= 2; round++ {
			a := map[string]string{"round": fmt.Sprint(round)}
			if round == 2 {
				a["best"] = "yes"
			}
			answer, _ := w.sellers.Call(w.now, protocol.Message{Performative: protocol.CFP, Sender: ann, Conversation: "c"}, w.call(a), w.cal)
			p, proposed := answer.Body.(message.Proposal)
			if proposed {
				spans = p.Capacity
			}
			for _, o := range p.Offers {
				made[o.Items[0].Unit] = append(made[o.Items[0].Unit], o.Items[0].Slot)
			}
		}
		var last, mixed []protocol.Slot
		for _, slots := range made {
			if len(slots) > 0 {
				last = append(last, slots[len(slots)-1])
				mixed = append(mixed, rapid.SampledFrom(slots).Draw(t, "slot"))
			}
		}
		for at := noon; at.Before(noon.Add(48 * time.Hour)); at = at.Add(time.Minute) {
			free := w.cal.Free(at, at.Add(time.Minute))
			if used := coresAt(last, at); used > free {
				t.Fatalf("at %s %d cores of %d are offered last, in %v", clock(at), used, free, last)
			}
			said := slices.ContainsFunc(spans, func(s protocol.Span) bool {
				return !at.Before(s.Start) && at.Before(s.End) && coresAt(mixed, at) > s.Cores
			})
			if used := coresAt(mixed, at); used > free && !said {
				t.Fatalf("at %s %d cores of %d are offered, in %v, and it says that it can give them: %v", clock(at), used, free, mixed, spans)
			}
		}
	})
}

// coresAt is how many cores slots take at an instant.
func coresAt(slots []protocol.Slot, at time.Time) int {
	used := 0
	for _, s := range slots {
		if !at.Before(s.Start) && at.Before(s.End) {
			used += s.Cores
		}
	}
	return used
}

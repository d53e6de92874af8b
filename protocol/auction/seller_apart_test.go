package auction_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Whatever is asked of one seller whose machine is free one day, the slots that it offered
// last in the best-offer round can be bought together, and so can whatever else it says
// that it can give: what it offered first still stands.
func TestASellerStandsAsideForItself(t *testing.T) {
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
		last := make([]protocol.Slot, n)
		first := message.Proposal{}
		for round := 1; round <= 2; round++ {
			a := map[string]string{"round": fmt.Sprint(round)}
			if round == 2 {
				a["best"] = "yes"
			}
			answer, _ := w.sellers.Call(w.now, protocol.Message{Performative: protocol.CFP, Sender: ann, Conversation: "c"}, w.call(a), w.cal)
			p, proposed := answer.Body.(message.Proposal)
			for _, o := range p.Offers {
				last[o.Items[0].Unit] = o.Items[0].Slot
				if ok := w.cal.Free(o.Items[0].Slot.Start, o.Items[0].Slot.End) >= o.Items[0].Slot.Cores; !ok {
					t.Fatalf("round %d: %+v is not free", round, o.Items[0].Slot)
				}
			}
			if round == 1 && proposed {
				first = p
			}
		}
		for at := noon; at.Before(noon.Add(48 * time.Hour)); at = at.Add(time.Minute) {
			used := 0
			for _, s := range last {
				if !at.Before(s.Start) && at.Before(s.End) {
					used += s.Cores
				}
			}
			if free := w.cal.Free(at, at.Add(time.Minute)); used > free {
				t.Fatalf("at %s %d cores of %d are offered, in %v; in round 1 %v", clock(at), used, free, last, first.Offers)
			}
		}
	})
}

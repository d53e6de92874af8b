package clearing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// crowded has sellers with joint cores whose many offers start at different times, and
// another seller of every unit.
func crowded(offers, items, units, sellers int) clearing.Problem {
	r := rand.New(rand.NewPCG(7, 7))
	p := clearing.Problem{Units: units, Objective: protocol.ObjectiveCost, Capacity: map[protocol.AgentID][]protocol.Span{}}
	for k := range sellers {
		sum := 0
		for i := range offers {
			b := bid(k, i, fmt.Sprintf("o%d", i), 0)
			for _, u := range r.Perm(units)[:items] {
				start, cores := r.IntN(1000), 1+r.IntN(16)
				sum += cores
				b.Offer.Items = append(b.Offer.Items, item(u, start, start+300, cores))
				b.Offer.Cost += protocol.Credits(1_000_000 + r.IntN(500_000))
			}
			p.Bids = append(p.Bids, b)
		}
		p.Capacity[sellerID(k)] = []protocol.Span{{Start: at(0), End: at(3000), Cores: max(16, sum/64)}}
	}
	for u := range units {
		p.Bids = append(p.Bids, bid(sellers, 0, fmt.Sprintf("f%d", u), 1_600_000, item(u, 0, 10, 1)))
	}
	return p
}

// The limit counts what the search does, so that no offers make it take longer. One seller's
// table of rows is bounded, and its last bids are ignored.
func TestTheLimitHoldsForCrowdedSellers(t *testing.T) {
	for _, c := range [][4]int{{1024, 32, 256, 1}, {600, 3, 25, 1}, {1024, 2, 25, 1}, {600, 3, 256, 1}, {200, 3, 25, 8}} {
		p := crowded(c[0], c[1], c[2], c[3])
		p.Limit = 5_000_000
		got := solve(t, p)
		if got.Status != clearing.Covered || got.Steps > p.Limit+10_000_000 { // one seller's problem may exceed it
			t.Errorf("%v: %s after %d steps", c, got.Status, got.Steps)
		}
	}
}

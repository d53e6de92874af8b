package clearing_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// TestUnitsThatBeginTogether compares with every set of bids, of which those count whose
// items all begin at the same instant.
func TestUnitsThatBeginTogether(t *testing.T) {
	covered := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := shape{units: 1 + r.IntN(3), sellers: 1 + r.IntN(3), offers: 2 + r.IntN(3), bundles: r.IntN(2), base: 3, costs: 4, tight: 70, groups: 30, terms: r.IntN(2) == 0}.random(r)
		p.Objective = protocol.Objective(1 + r.IntN(3))
		for i := range p.Bids { // few different starts
			for j := range p.Bids[i].Offer.Items {
				s := &p.Bids[i].Offer.Items[j].Slot
				length := s.Wall()
				s.Start = at(10 * r.IntN(3))
				s.End = s.Start.Add(length)
			}
		}
		if r.IntN(3) == 0 && len(p.Bids) > 0 && (&oracle{p: p, now: p.Bids[:1]}).fits() {
			p.Fixed, p.Bids = p.Bids[:1:1], p.Bids[1:]
			p.Bids = slices.DeleteFunc(p.Bids, func(b clearing.Bid) bool { return overlap(p.Fixed, b) })
		}
		want := (&oracle{p: p, together: true}).solve()
		p.Together = true
		got, err := clearing.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if (got.Status == clearing.Covered) != (want != nil) {
			t.Fatalf("seed %d: %s, want %v", seed, got.Status, want)
		}
		if want == nil {
			continue
		}
		covered++
		o := oracle{p: p, now: got.Chosen, together: true}
		if !o.feasible() {
			t.Fatalf("seed %d: %v do not begin together, or exclude each other", seed, got.Chosen)
		}
		worse := func(b []clearing.Bid) [4]int64 {
			var x [4]int64
			for _, b := range b {
				x[0], x[1] = x[0]+int64(b.Violations), x[1]+int64(b.Excess)
			}
			x[2], x[3] = int64(total(b)), latest(b).Unix()
			return x
		}
		if !got.Exact || worse(got.Chosen) != worse(want) {
			t.Fatalf("seed %d: exact %t, %v, want %v", seed, got.Exact, got.Chosen, want)
		}
	}
	if covered < 100 {
		t.Fatalf("only %d problems have a set", covered)
	}
}

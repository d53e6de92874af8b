package clearing_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// begunTogether is a small problem with few different starts.
func begunTogether(seed uint64, more int) clearing.Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := shape{units: 1 + more + r.IntN(3), sellers: 1 + more + r.IntN(3), offers: 2 + r.IntN(3), bundles: r.IntN(2), base: 3, costs: 4, tight: 70, groups: 30, terms: r.IntN(2) == 0}.random(r)
	p.Objective = protocol.Objective(1 + r.IntN(3))
	for i := range p.Bids {
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
	return p
}

// TestUnitsThatBeginTogether compares with every set of bids, of which those count whose
// items all begin at the same instant.
func TestUnitsThatBeginTogether(t *testing.T) {
	covered := 0
	for seed := range uint64(600) {
		p := begunTogether(seed, 0)
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

// At its limit the search may have left out the start of the best set. Its bounds hold all the same.
func TestBoundsOfUnitsThatBeginTogether(t *testing.T) {
	inexact := 0
	for seed := range uint64(600) {
		p := begunTogether(seed, 1)
		best := (&oracle{p: p, together: true}).solve()
		p.Together, p.Limit = true, 1+int(seed*37%600)
		got, err := clearing.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		terms := slices.ContainsFunc(p.Bids, func(b clearing.Bid) bool { return b.Violations+b.Excess > 0 })
		if got.Status != clearing.Covered || got.Exact || terms {
			continue
		}
		inexact++
		if p.Objective == protocol.ObjectiveTime && got.FinishBound.After(latest(best)) || p.Objective == protocol.ObjectiveCost && got.CostBound > total(best) {
			t.Errorf("seed %d: cost %d of at least %d, finish %s of at least %s; the best has %d, %s", seed, got.Cost, got.CostBound, got.Finish, got.FinishBound, total(best), latest(best))
		}
	}
	if inexact < 30 {
		t.Fatalf("only %d problems reach the limit", inexact)
	}
}

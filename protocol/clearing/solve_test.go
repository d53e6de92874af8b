package clearing_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// draw makes a small problem with everything in it.
func draw(t *rapid.T) clearing.Problem {
	n := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
	s := shape{
		units: n("units", 1, 5), sellers: n("sellers", 1, 4), offers: n("offers", 1, 2), bundles: n("bundles", 0, 3),
		costs: rapid.SampledFrom([]int{1, 3, 50}).Draw(t, "costs"), tight: rapid.SampledFrom([]int{0, 20, 40, 70}).Draw(t, "tight"),
		groups: 50, single: rapid.SampledFrom([]int{0, 30}).Draw(t, "single"), terms: rapid.Bool().Draw(t, "terms"),
		base: rapid.SampledFrom([]int{0, 200}).Draw(t, "base"), // then many sets cost about the same
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	p := s.random(r)
	p.Objective = rapid.SampledFrom([]protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime, protocol.ObjectiveCostTime}).Draw(t, "objective")
	if n("fixed", 0, 2) == 0 && len(p.Bids) > 0 {
		p.Fixed = []clearing.Bid{p.Bids[r.IntN(len(p.Bids))]}
		if !(&oracle{p: p, now: p.Fixed}).fits() {
			p.Fixed = nil // nobody agrees to what it cannot give
		}
	}
	if n("max finish", 0, 3) == 0 && p.Fixed == nil {
		p.MaxFinish = at(16 + r.IntN(40))
	}
	if n("max cost", 0, 2) == 0 {
		p.MaxCost = protocol.Credits(1 + r.IntN(s.units*(s.base+s.costs)*60))
	}
	return p
}

func TestSolveAgreesWithTryingEverySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkSolve(t, draw(t)) })
}

// TestTreesAgreeWithTryingEverySet has small problems solved like those that bounds from
// multipliers do not prove.
func TestTreesAgreeWithTryingEverySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkSolve(t, clearing.WithTree(draw(t))) })
}

// TestCostTimeAgreesWithTryingEverySet has offers that cost about the same, so that a
// credit decides whether a set may finish earlier.
func TestCostTimeAgreesWithTryingEverySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := clearing.Problem{Units: rapid.IntRange(1, 3).Draw(t, "units"), Objective: protocol.ObjectiveCostTime}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		least := rapid.SampledFrom([]int{19, 20, 40, 99}).Draw(t, "least")
		for u := range p.Units {
			for k := range 6 {
				b := bid(k, 0, string(rune('a'+u)), least+r.IntN(max(4, least/10)), item(u, 0, 1+r.IntN(20), 1))
				if rapid.Bool().Draw(t, "breaks a term") {
					b.Violations, b.Excess = r.IntN(2), r.IntN(2)
				}
				p.Bids = append(p.Bids, b)
			}
		}
		checkSolve(t, p)
	})
}

// TestSolveFindsTheBestOfCrowdedSellers has few sellers with little room, so that
// what each can sell together is what matters.
func TestSolveFindsTheBestOfCrowdedSellers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shape{
			units: rapid.IntRange(5, 7).Draw(t, "units"), sellers: 3, offers: 2, bundles: rapid.IntRange(0, 3).Draw(t, "bundles"), costs: 50,
			base: rapid.SampledFrom([]int{0, 200}).Draw(t, "base"), tight: rapid.IntRange(30, 50).Draw(t, "tight"), groups: 50,
		}
		p := s.random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		p.Objective = rapid.SampledFrom([]protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime}).Draw(t, "objective")
		checkSolve(t, p)
		checkSolve(t, clearing.WithTree(p))
	})
}

// TestASellersOwnProblemIsSolvedExactlyOrBounded looks inside: an error there
// shows in whole problems only now and then.
func TestASellersOwnProblemIsSolvedExactlyOrBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shape{
			units: rapid.IntRange(6, 12).Draw(t, "units"), sellers: 1, offers: 2, bundles: rapid.IntRange(0, 5).Draw(t, "bundles"), costs: 50, base: 100,
			tight: rapid.IntRange(10, 50).Draw(t, "tight"), groups: 50,
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := s.random(r)
		nodes := rapid.SampledFrom([]int{5, 300}).Draw(t, "nodes")
		for _, got := range clearing.PriceAll(p, nodes, 150, func(int) int64 { return int64(r.IntN(25_000)) }) {
			if got.Bound > got.Least || got.Exact && got.Bound != got.Least {
				t.Fatalf("bound %d, exact %t, of %d", got.Bound, got.Exact, got.Least)
			}
		}
	})
}

// Excesses of many bits are rounded in the relaxation, and a ceiling joins all limits. Both are left
// to bounds from multipliers after a while.
func TestTermsUnderACeilingAreProved(t *testing.T) {
	s := shape{units: 12, sellers: 8, offers: 2, base: 7_000_000, costs: 3_000_000, groups: 50, tight: 30}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 5004))
		p := s.random(r)
		p.Limit = 150_000_000
		cheapest := make([]protocol.Credits, p.Units)
		for i := range p.Bids {
			b := &p.Bids[i]
			b.Violations, b.Excess = len(b.Offer.Items), 1<<30+r.IntN(1<<28)
			if u := b.Offer.Items[0].Unit; cheapest[u] == 0 || b.Offer.Cost < cheapest[u] {
				cheapest[u] = b.Offer.Cost
			}
		}
		for _, c := range cheapest {
			p.MaxCost += c * 108 / 100
		}
		if got, err := clearing.Solve(p); err != nil || got.Status != clearing.Covered || !got.Exact {
			t.Errorf("seed %d: %s, exact %t after %d steps and %d nodes (%v)", seed, got.Status, got.Exact, got.Steps, got.Nodes, err)
		}
	}
}

func checkSolve(t *rapid.T, p clearing.Problem) {
	want := (&oracle{p: p}).solve()
	got, err := clearing.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		checkNone(t, p, got)
		return
	}
	if got.Status != clearing.Covered || !got.Exact {
		t.Fatalf("%s, exact %t, want the set %v of cost %s", got.Status, got.Exact, names(want), total(want))
	}
	if (&oracle{p: p}).compare(got.Chosen, want) != 0 || !slices.Equal(names(got.Chosen), names(want)) {
		t.Fatalf("chose %v cost %s finish %s, want %v cost %s finish %s", names(got.Chosen), got.Cost, got.Finish,
			names(want), total(want), latest(want))
	}
	if got.Cost != total(want) || !got.Finish.Equal(latest(want)) || got.CostBound != got.Cost {
		t.Fatalf("sums are wrong: %+v", got)
	}
}

func names(set []clearing.Bid) []string {
	var ns []string
	for _, b := range set {
		ns = append(ns, string(b.Seller[:3])+"/"+b.Offer.ID)
	}
	slices.Sort(ns)
	return ns
}

// checkNone checks the reason given for there being no set.
func checkNone(t *rapid.T, p clearing.Problem, got clearing.Solution) {
	if got.Status == clearing.Covered || got.Chosen != nil {
		t.Fatalf("chose %v, though there is no set", names(got.Chosen))
	}
	cheapest := (&oracle{p: p, min: true}).solve()
	switch got.Status {
	case clearing.TooDear:
		if p.MaxCost == 0 || len(p.Fixed) == 0 && (cheapest == nil || got.CostBound > total(cheapest)) || got.CostBound <= p.MaxCost {
			t.Fatalf("too dear: bound %s, ceiling %s, cheapest %s", got.CostBound, p.MaxCost, total(cheapest))
		}
	case clearing.Unoffered, clearing.Conflicting:
		if cheapest != nil || len(got.Units) == 0 {
			t.Fatalf("%s %v, though %v covers all", got.Status, got.Units, names(cheapest))
		}
	default:
		t.Fatalf("no reason: %+v", got)
	}
}

func TestSolveNamesTheSameSetWhateverTheOrderOfBids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		limit := rapid.SampledFrom([]int{0, 40, 400}).Draw(t, "limit")
		p.Limit = limit
		want, _ := clearing.Solve(p)
		p.Bids = rapid.Permutation(p.Bids).Draw(t, "order")
		got, _ := clearing.Solve(p)
		if !slices.Equal(names(got.Chosen), names(want.Chosen)) || got.Status != want.Status || got.Steps != want.Steps {
			t.Fatalf("%s %v in one order, %s %v in another", want.Status, names(want.Chosen), got.Status, names(got.Chosen))
		}
	})
}

// A tree that stopped at its first set has proved nothing of sets that finish earlier: what is
// exact within a small limit is what a large one finds.
func TestATreeThatStoppedProvesNothing(t *testing.T) {
	s := shape{units: 9, sellers: 6, offers: 2, bundles: 6, base: 200, costs: 3, tight: 20, groups: 50, single: 30}
	for _, seed := range []uint64{531, 1459, 2051, 3555, 4397, 6687} {
		p := s.random(rand.New(rand.NewPCG(seed, 1)))
		p.Objective, p.Limit = protocol.ObjectiveCostTime, 100_000
		got := solve(t, p)
		p.Limit = 20_000_000
		if want := solve(t, p); !want.Exact || got.Exact && (got.Cost != want.Cost || !got.Finish.Equal(want.Finish)) {
			t.Errorf("seed %d: exact, cost %d and finish %s; want %d and %s (%v)", seed, got.Cost, got.Finish, want.Cost, want.Finish, want.Exact)
		}
	}
}

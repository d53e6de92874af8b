package clearing_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

func solve(t *testing.T, p clearing.Problem) clearing.Solution {
	t.Helper()
	if p.Objective == 0 {
		p.Objective = protocol.ObjectiveCost
	}
	s, err := clearing.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTies(t *testing.T) {
	one := item(0, 0, 10, 4)
	for name, bids := range map[string][]clearing.Bid{ // the winner is seller 1, offer w
		"the cheaper wins":                                   {bid(1, 9, "w", 5, item(0, 0, 20, 4)), bid(0, 0, "a", 6, one)},
		"equal costs go to the earlier end":                  {bid(1, 9, "w", 5, item(0, 0, 9, 4)), bid(0, 0, "a", 5, one)},
		"equal costs and ends go to the one that came first": {bid(1, 1, "w", 5, one), bid(0, 2, "a", 5, one)},
		"then to the smaller agent ID":                       {bid(1, 1, "w", 5, one), bid(2, 1, "a", 5, one)},
		"then to the smaller offer ID":                       {bid(1, 1, "w", 5, one), bid(1, 1, "x", 5, one)},
	} {
		t.Run(name, func(t *testing.T) {
			other := bid(5, 0, "other", 3, item(1, 30, 40, 1))
			for units := 1; units <= 2; units++ {
				for range 2 {
					slices.Reverse(bids)
					got := solve(t, clearing.Problem{Units: units, Bids: append(slices.Clone(bids), other)})
					if names(got.Chosen)[0] != "s01/w" || !got.Exact {
						t.Errorf("%d units: chose %v", units, names(got.Chosen))
					}
				}
			}
		})
	}
}

func TestObjectiveTimePaysMoreToFinishEarlier(t *testing.T) {
	bids := []clearing.Bid{
		bid(0, 0, "late", 1, item(0, 0, 30, 1)), bid(1, 0, "soon", 9, item(0, 0, 20, 1)), bid(2, 0, "dear", 10, item(0, 0, 20, 1)),
	}
	for o, want := range map[protocol.Objective]string{protocol.ObjectiveCost: "s00/late", protocol.ObjectiveTime: "s01/soon"} {
		if got := names(solve(t, clearing.Problem{Units: 1, Bids: bids, Objective: o}).Chosen); got[0] != want {
			t.Errorf("%s: chose %v, want %s", o, got, want)
		}
	}
}

func TestObjectiveCostTimePaysATwentiethMoreToFinishEarlier(t *testing.T) {
	for want, costs := range map[string][2]int{"s01/soon": {100, 105}, "s00/late": {100, 106}} {
		for units, more := range map[int][]clearing.Bid{1: nil, 2: {bid(2, 0, "other", 0, item(1, 0, 10, 1))}} {
			p := clearing.Problem{Units: units, Objective: protocol.ObjectiveCostTime, Bids: append(more,
				bid(0, 0, "late", costs[0], item(0, 0, 30, 1)), bid(1, 0, "soon", costs[1], item(0, 0, 20, 1)), bid(3, 0, "first", 110, item(0, 0, 10, 1)))}
			if got := solve(t, p); got.Chosen[0].Seller != sellerID(int(want[2]-'0')) || !got.Exact {
				t.Errorf("%d units at %v: chose %v, exact %t, want %s", units, costs, names(got.Chosen), got.Exact, want)
			}
		}
	}
}

func TestAnOfferThatEndsBeforeTheRestCostsNoTime(t *testing.T) {
	p := clearing.Problem{Units: 2, Objective: protocol.ObjectiveTime, Bids: []clearing.Bid{
		bid(0, 0, "only", 5, item(0, 0, 50, 1)), bid(1, 0, "soon", 9, item(1, 0, 20, 1)), bid(2, 0, "cheap", 1, item(1, 0, 40, 1)),
	}}
	if got := solve(t, p); !slices.Equal(names(got.Chosen), []string{"s00/only", "s02/cheap"}) {
		t.Errorf("chose %v", names(got.Chosen))
	}
}

func TestTheClosestSetViolatesTheFewestTermsThenByTheLeast(t *testing.T) {
	near := func(seller, violations, excess, cost int) clearing.Bid {
		b := bid(seller, 0, "o", cost, item(0, 0, 10, 1))
		b.Violations, b.Excess = violations, excess
		return b
	}
	got := solve(t, clearing.Problem{Units: 1, Bids: []clearing.Bid{near(0, 2, 1, 1), near(1, 1, 300, 1), near(2, 1, 80, 9), near(3, 1, 80, 8)}})
	if names(got.Chosen)[0] != "s03/o" || got.Violations != 1 || got.Excess != 80 {
		t.Errorf("chose %v, %d violations, excess %d", names(got.Chosen), got.Violations, got.Excess)
	}
}

func TestFixedBidsTakeTheirUnitsGroupAndCores(t *testing.T) {
	fixed := bid(0, 0, "agreed", 7, item(0, 0, 10, 6))
	fixed.Offer.Group = "g"
	grouped := bid(0, 0, "same group", 1, item(1, 20, 30, 1))
	grouped.Offer.Group = "g"
	p := clearing.Problem{
		Units: 2, Fixed: []clearing.Bid{fixed},
		Capacity: map[protocol.AgentID][]protocol.Span{sellerID(0): {{Start: at(0), End: at(60), Cores: 8}}},
		Bids: []clearing.Bid{
			fixed, grouped, bid(0, 0, "too large beside it", 1, item(1, 5, 15, 3)),
			bid(0, 0, "fits", 4, item(1, 5, 15, 2)), bid(1, 0, "dear", 5, item(1, 5, 15, 3)),
		},
	}
	got := solve(t, p)
	if !slices.Equal(names(got.Chosen), []string{"s00/agreed", "s00/fits"}) || got.Cost != 11 {
		t.Errorf("chose %v for %d", names(got.Chosen), got.Cost)
	}
	p.MaxCost = 6
	if got := solve(t, p); got.Status != clearing.TooDear || got.CostBound != 7 {
		t.Errorf("with a ceiling below what is fixed: %s, bound %d", got.Status, got.CostBound)
	}
}

func TestEverythingFixedIsASet(t *testing.T) {
	p := clearing.Problem{Units: 2, Fixed: []clearing.Bid{bid(0, 0, "a", 7, item(1, 0, 10, 6), item(0, 0, 9, 1))}}
	if got := solve(t, p); got.Status != clearing.Covered || got.Cost != 7 || !got.Finish.Equal(at(10)) || !got.Exact {
		t.Errorf("%+v", got)
	}
}

func TestJointCoresHoldWhereSlotsOverlapOnly(t *testing.T) {
	p := clearing.Problem{
		Units:    2,
		Capacity: map[protocol.AgentID][]protocol.Span{sellerID(0): {{Start: at(0), End: at(20), Cores: 8}}},
		Bids:     []clearing.Bid{bid(0, 0, "a", 1, item(0, 0, 10, 5)), bid(0, 0, "b", 1, item(1, 9, 20, 4)), bid(1, 0, "c", 9, item(1, 0, 5, 4))},
	}
	if got := solve(t, p); got.Cost != 10 {
		t.Errorf("9 cores of 8 were bought: %v", names(got.Chosen))
	}
	p.Bids[1].Offer.Items[0].Slot.Start = at(10) // when the other ends
	if got := solve(t, p); got.Cost != 2 {
		t.Errorf("slots that only touch were kept apart: %v", names(got.Chosen))
	}
	p.Bids[1].Offer.Items[0].Slot = protocol.Slot{Start: at(20), End: at(30), Cores: 100}
	if got := solve(t, p); got.Cost != 2 {
		t.Errorf("a limit was kept after its span: %v", names(got.Chosen))
	}
}

func TestWhyThereIsNoSet(t *testing.T) {
	grouped := func(id string, unit int) clearing.Bid {
		b := bid(0, 0, id, 5, item(unit, 0, 10, 1))
		b.Offer.Group = "g"
		return b
	}
	alone := bid(1, 0, "alone", 5, item(3, 0, 10, 1))
	for name, c := range map[string]struct {
		p      clearing.Problem
		status clearing.Status
		units  []int
		bound  protocol.Credits
	}{
		"units nobody bids for are named": {
			clearing.Problem{Units: 4, Bids: []clearing.Bid{alone}}, clearing.Unoffered, []int{0, 1, 2}, 0},
		"an offer that ends too late is none": {
			clearing.Problem{Units: 1, Bids: []clearing.Bid{bid(0, 0, "late", 5, item(0, 0, 10, 1))}, MaxFinish: at(9)}, clearing.Unoffered, []int{0}, 0},
		"an offer beyond its seller's cores is none": {
			clearing.Problem{
				Units: 1, Bids: []clearing.Bid{bid(0, 0, "large", 5, item(0, 0, 10, 9))},
				Capacity: map[protocol.AgentID][]protocol.Span{sellerID(0): {{Start: at(5), End: at(6), Cores: 8}}},
			}, clearing.Unoffered, []int{0}, 0},
		"two units that one group must serve conflict": {
			clearing.Problem{Units: 4, Bids: []clearing.Bid{grouped("a", 0), grouped("b", 2), alone, bid(2, 0, "c", 5, item(1, 0, 10, 1))}},
			clearing.Conflicting, []int{0, 2}, 0},
		"the least cost above the ceiling is told": {
			clearing.Problem{Units: 1, Bids: []clearing.Bid{bid(0, 0, "a", 5, item(0, 0, 10, 1)), bid(1, 0, "b", 6, item(0, 0, 10, 1))}, MaxCost: 4},
			clearing.TooDear, nil, 5},
		"so it is for several units and objective time": {
			clearing.Problem{Units: 4, Bids: []clearing.Bid{alone, bid(2, 0, "rest", 6, item(0, 0, 10, 1), item(1, 0, 10, 1), item(2, 0, 10, 1))},
				MaxCost: 10, Objective: protocol.ObjectiveTime}, clearing.TooDear, nil, 11},
	} {
		t.Run(name, func(t *testing.T) {
			got := solve(t, c.p)
			if got.Status != c.status || !slices.Equal(got.Units, c.units) || got.CostBound != c.bound || got.Chosen != nil {
				t.Errorf("%s, units %v, bound %d, want %s, %v, %d", got.Status, got.Units, got.CostBound, c.status, c.units, c.bound)
			}
		})
	}
}

func TestBadBidsAreLeftOut(t *testing.T) {
	good := bid(9, 0, "good", 1000, item(0, 0, 10, 1), item(1, 0, 10, 1))
	bad := map[string]clearing.Bid{
		"no items":              bid(0, 0, "x", 1),
		"a unit nobody asked":   bid(0, 0, "x", 1, item(2, 0, 10, 1)),
		"a negative unit":       bid(0, 0, "x", 1, item(-1, 0, 10, 1)),
		"one unit twice":        bid(0, 0, "x", 1, item(0, 0, 10, 1), item(0, 0, 10, 1)),
		"more items than units": bid(0, 0, "x", 1, item(0, 0, 10, 1), item(1, 0, 10, 1), item(0, 0, 10, 1)),
		"a negative cost":       bid(0, 0, "x", -1, item(0, 0, 10, 1), item(1, 0, 10, 1)),
		"a cost that overflows": bid(0, 0, "x", math.MaxInt64, item(0, 0, 10, 1), item(1, 0, 10, 1)),
		"no cores":              bid(0, 0, "x", 1, item(0, 0, 10, 0), item(1, 0, 10, 1)),
		"negative cores":        bid(0, 0, "x", 1, item(0, 0, 10, -4), item(1, 0, 10, 1)),
		"an end before start":   bid(0, 0, "x", 1, item(0, 10, 0, 1), item(1, 0, 10, 1)),
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			if b.Validate(2) == nil {
				t.Error("Validate lets it pass")
			}
			got := solve(t, clearing.Problem{Units: 2, Bids: []clearing.Bid{b, good}})
			if !slices.Equal(names(got.Chosen), []string{"s09/good"}) {
				t.Errorf("%s: chose %v", got.Status, names(got.Chosen))
			}
		})
	}
}

func TestBadProblemsAreRefused(t *testing.T) {
	fixed := bid(0, 0, "x", 1, item(0, 0, 10, 1))
	for name, p := range map[string]clearing.Problem{
		"no units":                 {Units: 0, Objective: protocol.ObjectiveCost},
		"too many units":           {Units: protocol.MaxUnits + 1, Objective: protocol.ObjectiveCost},
		"no objective":             {Units: 1},
		"a negative ceiling":       {Units: 1, Objective: protocol.ObjectiveCost, MaxCost: -1},
		"a negative limit":         {Units: 1, Objective: protocol.ObjectiveCost, Limit: -1},
		"a unit fixed twice":       {Units: 1, Objective: protocol.ObjectiveCost, Fixed: []clearing.Bid{fixed, fixed}},
		"a fixed bid that is bad":  {Units: 1, Objective: protocol.ObjectiveCost, Fixed: []clearing.Bid{bid(0, 0, "x", -1, item(0, 0, 10, 1))}},
		"a fixed bid that is late": {Units: 1, Objective: protocol.ObjectiveCost, Fixed: []clearing.Bid{fixed}, MaxFinish: at(5)},
	} {
		if _, err := clearing.Solve(p); !errors.Is(err, clearing.ErrProblem) {
			t.Errorf("%s: error %v, want ErrProblem", name, err)
		}
	}
}

func TestTheDearestOffersAddUpWithoutOverflow(t *testing.T) {
	p := clearing.Problem{Units: protocol.MaxUnits, Capacity: map[protocol.AgentID][]protocol.Span{}}
	for u := range p.Units {
		for k := range 3 {
			p.Bids = append(p.Bids, bid(k, 0, "o"+string(rune('A'+u)), int(clearing.MaxOfferCost)-k, item(u, u%7, 30, protocol.MaxCores)))
			p.Capacity[sellerID(k)] = []protocol.Span{{Start: at(0), End: at(60), Cores: math.MaxInt}}
		}
	}
	for _, o := range []protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime} {
		p.Objective = o
		got := solve(t, p)
		want := protocol.MaxUnits * (clearing.MaxOfferCost - 2)
		if got.Status != clearing.Covered || got.Cost != want || !got.Exact {
			t.Errorf("%s: %s, cost %d, want %d, exact %t", o, got.Status, got.Cost, want, got.Exact)
		}
	}
}

func TestBoundsAtTheLimitAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Limit = rapid.IntRange(1, 3000).Draw(t, "limit")
		best := (&oracle{p: p}).solve()
		got, err := clearing.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != clearing.Covered {
			if best != nil && got.Status != clearing.Undecided {
				t.Fatalf("%s, though %v is a set", got.Status, names(best))
			}
			return
		}
		if !(&oracle{p: p, now: got.Chosen}).feasible() {
			t.Fatalf("%v is no set", names(got.Chosen))
		}
		checkBounds(t, p, got, best)
	})
}

// checkBounds compares what is proved of sets that are at least as good in what
// comes before with the best of all.
func checkBounds(t *rapid.T, p clearing.Problem, got clearing.Solution, best []clearing.Bid) {
	first, last := got.CostBound <= total(best), true
	if p.Objective == protocol.ObjectiveTime {
		first, last = !got.FinishBound.After(latest(best)), latest(best).Before(got.Finish) || got.CostBound <= total(best)
	} else if total(best) == got.Cost {
		last = !got.FinishBound.After(latest(best))
	}
	terms := slices.ContainsFunc(p.Bids, func(b clearing.Bid) bool { return b.Violations+b.Excess > 0 })
	if !terms && (!first || !last) {
		t.Fatalf("cost %d of at least %d, finish %s of at least %s; the best has %d, %s", got.Cost, got.CostBound,
			got.Finish.Format(time.TimeOnly), got.FinishBound.Format(time.TimeOnly), total(best), latest(best).Format(time.TimeOnly))
	}
	if got.Exact && total(best) != got.Cost {
		t.Fatalf("exact, but cost %d is not %d", got.Cost, total(best))
	}
}

// A seller's offers without joint cores depend on each other no more than those of
// different sellers, and are solved as fast.
func TestPairsOfOneSellerAreSolvedLikeThoseOfMany(t *testing.T) {
	for _, pairs := range []int{60, 100, 300} {
		r := rand.New(rand.NewPCG(uint64(pairs), 1))
		p := clearing.Problem{Units: 25}
		for u := range p.Units {
			for k := range 3 {
				p.Bids = append(p.Bids, bid(1+k, k, string(rune('a'+u)), 1_000_000+r.IntN(300_000), item(u, 0, 10, 1)))
			}
		}
		for i := range pairs {
			u, v := r.IntN(p.Units), r.IntN(p.Units-1)
			if v >= u {
				v++
			}
			p.Bids = append(p.Bids, bid(0, 0, strconv.Itoa(i), 1_500_000+r.IntN(900_000), item(u, 0, 10, 1), item(v, 0, 10, 1)))
		}
		if got := solve(t, p); !got.Exact || got.Steps > 5_000_000 {
			t.Errorf("%d pairs: exact %t after %d steps", pairs, got.Exact, got.Steps)
		}
	}
}

// A part may exceed its own least for the sake of another, so at the limit the bound on the finish
// counts the offers for that.
func TestBoundsOnTheFinishOfAllParts(t *testing.T) {
	near := func(seller int, id string, cost, violations, excess int, items ...protocol.Item) clearing.Bid {
		b := bid(seller, 0, id, cost, items...)
		b.Violations, b.Excess = violations, excess
		return b
	}
	p := clearing.Problem{Units: 3, Objective: protocol.ObjectiveTime, Bids: []clearing.Bid{
		near(0, "o0", 6, 2, 4, item(0, 0, 7, 1)), near(1, "o1", 7, 2, 4, item(0, 0, 3, 1)), near(2, "o2", 1, 2, 0, item(0, 0, 21, 1)),
		near(0, "o3", 5, 0, 0, item(1, 0, 20, 1)), near(2, "o5", 5, 2, 0, item(2, 0, 18, 1)), near(0, "o6", 1, 0, 0, item(2, 0, 26, 1)),
		near(1, "b7", 15, 0, 0, item(0, 0, 23, 1), item(1, 0, 15, 1)),
	}}
	for p.Limit = 1; p.Limit < 80; p.Limit++ {
		// o5 and b7 violate two terms by nothing, and end at 23.
		if got := solve(t, p); got.Violations >= 2 && !got.Exact && got.FinishBound.After(at(23)) {
			t.Errorf("at %d steps no set ends before %s", p.Limit, got.FinishBound)
		}
	}
}

func TestOffersOfOneIDAreRankedByContentNotByTheirOrder(t *testing.T) {
	same := bid(0, 0, "o", 5, item(0, 0, 10, 4))
	for name, change := range map[string]func(b *clearing.Bid){
		"start": func(b *clearing.Bid) { b.Offer.Items[0].Slot.Start = at(1) },
		"cores": func(b *clearing.Bid) { b.Offer.Items[0].Slot.Cores = 5 },
		"group": func(b *clearing.Bid) { b.Offer.Group = "g" },
	} {
		other := bid(0, 0, "o", 5, item(0, 0, 10, 4))
		change(&other)
		for _, bids := range [][]clearing.Bid{{same, other}, {other, same}} {
			if got := solve(t, clearing.Problem{Units: 1, Bids: bids}); !reflect.DeepEqual(got.Chosen, []clearing.Bid{same}) {
				t.Errorf("%s: chose %+v", name, got.Chosen)
			}
		}
	}
}

func TestASetIsInOrderOfItsFirstUnits(t *testing.T) {
	p := clearing.Problem{Units: 3, Bids: []clearing.Bid{bid(1, 0, "middle", 1, item(1, 0, 10, 1)), bid(0, 0, "ends", 1, item(2, 0, 10, 1), item(0, 0, 10, 1))}}
	if got := solve(t, p).Chosen; got[0].Offer.ID != "ends" {
		t.Errorf("chose %+v", got)
	}
}

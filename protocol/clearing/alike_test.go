package clearing_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// Many units may be alike, as in a parameter scan, and each seller has cores for some of
// them. The search fills the cheapest sellers one after the other, and proves the result
// at the root for any prices and cores.
func TestUnitsAlikeAreSolvedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, sellers := rapid.IntRange(2, 25).Draw(t, "units"), rapid.IntRange(2, 20).Draw(t, "sellers")
		p := clearing.Problem{Units: units, Objective: protocol.ObjectiveCost, Capacity: map[protocol.AgentID][]protocol.Span{}}
		var costs []int
		for k := range sellers {
			cost := rapid.IntRange(1_000_000, 1_100_000).Draw(t, "cost")
			room := rapid.IntRange(0, units).Draw(t, "room")
			if k == 0 {
				room = units // so that there is a set
			}
			for u := range units {
				p.Bids = append(p.Bids, bid(k, k*units+u, string(rune('a'+u)), cost, item(u, 0, 60, 64)))
				if u < room {
					costs = append(costs, cost)
				}
			}
			p.Capacity[sellerID(k)] = []protocol.Span{{Start: at(0), End: at(60), Cores: 64 * room}}
		}
		slices.Sort(costs)
		want := protocol.Credits(0)
		for _, c := range costs[:units] {
			want += protocol.Credits(c)
		}
		got, err := clearing.Solve(p)
		if err != nil || got.Status != clearing.Covered || got.Cost != want || !got.Exact {
			t.Fatalf("%s, cost %s, want %s, exact %t after %d steps and %d nodes (%v)", got.Status, got.Cost, want, got.Exact, got.Steps, got.Nodes, err)
		}
	})
}

// Where sellers have cores for some of the units only, the others run later: as few as possible,
// where that is cheapest. This is proved, too.
func TestUnitsAlikeThatRunLateAreTheFewestAndCheapest(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		const units = 25
		p := clearing.Problem{Units: units, Objective: protocol.ObjectiveCost, Capacity: map[protocol.AgentID][]protocol.Span{}}
		late, want, least := units, 0, 0
		for k := range 4 {
			room, cost, later := 1+r.IntN(5), 2000+r.IntN(4000), 2000+r.IntN(4000)
			p.Capacity[sellerID(k)] = []protocol.Span{{Start: at(0), End: at(60), Cores: 64 * room}}
			for u := range units {
				b := bid(k, u, "late"+strconv.Itoa(u), later, item(u, 60, 120, 64))
				b.Violations, b.Excess = 1, 1000
				p.Bids = append(p.Bids, bid(k, u, strconv.Itoa(u), cost, item(u, 0, 60, 64)), b)
			}
			late, want = late-room, want+room*cost
			if k == 0 || later < least {
				least = later
			}
		}
		want += late * least
		got, err := clearing.Solve(p)
		if err != nil || got.Violations != late || got.Excess != 1000*late || got.Cost != protocol.Credits(want) || !got.Exact {
			t.Errorf("%s, %d late, %d per mille, cost %s, want %d and %d, exact %t after %d steps and %d nodes (%v)",
				got.Status, got.Violations, got.Excess, got.Cost, late, want, got.Exact, got.Steps, got.Nodes, err)
		}
	}
}

// Bundles of nearly equal prices leave many optima to the relaxation, and cliques that were
// dropped are found again. The search must come to its end all the same.
func TestCliquesComeToAnEnd(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 5))
		units := 6 + r.IntN(3)
		p := clearing.Problem{Units: units, Objective: protocol.ObjectiveCost, Limit: 2_000_000}
		for i := range 60 + r.IntN(80) {
			items := 2 + r.IntN(3)
			b := bid(i%5, i, strconv.Itoa(i), items*10+r.IntN(2))
			for _, u := range r.Perm(units)[:items] {
				b.Offer.Items = append(b.Offer.Items, item(u, 5, 9, 1))
			}
			p.Bids = append(p.Bids, b)
		}
		for u := range units {
			p.Bids = append(p.Bids, bid(7, 0, "f"+strconv.Itoa(u), 12+r.IntN(8), item(u, 5, 9, 1)))
		}
		if s, err := clearing.Solve(clearing.WithTree(p)); err != nil || !s.Exact {
			t.Errorf("seed %d: not exact after %d steps and %d nodes (%v)", seed, s.Steps, s.Nodes, err)
		}
	}
}

// Cores for all units but one are soon seen to be too few, at any cost.
func TestTooFewCoresForUnitsAlike(t *testing.T) {
	for _, c := range []struct{ units, sellers int }{{10, 5}, {25, 4}, {25, 20}, {60, 30}, {200, 20}} {
		for _, cost := range []int{1, 1_000_000_000} {
			p := clearing.Problem{Units: c.units, Objective: protocol.ObjectiveTime, Capacity: map[protocol.AgentID][]protocol.Span{}}
			for k := range c.sellers {
				p.Capacity[sellerID(k)] = []protocol.Span{{Start: at(0), End: at(60), Cores: (c.units - 1 + k) / c.sellers}}
				for u := range c.units {
					p.Bids = append(p.Bids, bid(k, u, strconv.Itoa(u), cost+cost*k/9, item(u, 0, 60, 1)))
				}
			}
			if got, err := clearing.Solve(p); err != nil || got.Status != clearing.Conflicting || !got.Exact || got.Steps > 30_000_000 {
				t.Errorf("%v at %d: %s, exact %t after %d steps and %d nodes (%v)", c, cost, got.Status, got.Exact, got.Steps, got.Nodes, err)
			}
		}
	}
}

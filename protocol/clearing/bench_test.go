package clearing_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// plain has requests of 25 units to 20 sellers (30 in the last) that the search must
// solve exactly within the default limit. Joint cores are two fifths of the sum of a
// seller's offers, so that many exclude each other.
func plain() map[string]shape {
	return map[string]shape{
		"additive":       {units: 25, sellers: 20, offers: 2, costs: 30_000_000},
		"groups":         {units: 25, sellers: 20, offers: 4, costs: 30_000_000, groups: 100},
		"joint cores":    {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, tight: 40},
		"bundles":        {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, bundles: 12},
		"equal prices":   {units: 25, sellers: 20, offers: 2, costs: 1, groups: 50, tight: 15, bundles: 4},
		"terms":          {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, tight: 20, bundles: 12, terms: true},
		"one group each": {units: 25, sellers: 30, offers: 2, costs: 30_000_000, single: 100, bundles: 6},
	}
}

// hard has problems that may exceed the limit: many sets of nearly equal cost, very
// tight joint cores, and many overlapping bundles with discounts.
func hard() map[string]shape {
	return map[string]shape{
		"close prices":      {units: 25, sellers: 20, offers: 2, base: 7_000_000, costs: 3_000_000, groups: 50, tight: 25},
		"scarce cores":      {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, tight: 25},
		"tight cores":       {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, tight: 12},
		"tight and bundles": {units: 25, sellers: 20, offers: 2, costs: 30_000_000, groups: 50, single: 20, tight: 15, bundles: 12},
		"small prices":      {units: 25, sellers: 20, offers: 3, costs: 40, groups: 50, single: 10, tight: 15, bundles: 12},
	}
}

// tally sums up the solutions of one problem for many seeds.
type tally struct {
	times   []time.Duration
	inexact int
	gap     float64 // widest, as part of the cost
	nodes   int
}

// survey solves one problem for each seed and checks every set.
func survey(t *testing.T, s shape, o protocol.Objective, seeds uint64, limit int) tally {
	t.Helper()
	var sum tally
	for seed := range seeds {
		p := s.random(rand.New(rand.NewPCG(seed, 1)))
		p.Objective, p.Limit = o, limit
		start := time.Now()
		got, err := clearing.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		sum.times = append(sum.times, time.Since(start))
		sum.nodes = max(sum.nodes, got.Nodes)
		if got.Status != clearing.Covered || !(&oracle{p: p, now: got.Chosen}).feasible() {
			t.Errorf("seed %d: %s %v", seed, got.Status, names(got.Chosen))
			continue
		}
		if !got.Exact {
			sum.inexact++
			sum.gap = max(sum.gap, float64(got.Cost-got.CostBound)/float64(got.Cost))
		}
	}
	slices.Sort(sum.times)
	return sum
}

func (s tally) String() string {
	n := len(s.times)
	return fmt.Sprintf("p50 %s, p95 %s, max %s, most nodes %d, not exact %d of %d, widest gap %.1f %%",
		s.times[n/2].Round(time.Microsecond), s.times[n*95/100].Round(time.Microsecond), s.times[n-1].Round(time.Microsecond),
		s.nodes, s.inexact, n, 100*s.gap)
}

// seeds is how many problems of each shape a test solves: few, unless
// CLEARING_SEEDS asks for a survey.
func seeds(few uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("CLEARING_SEEDS"), 10, 16); err == nil {
		return n
	}
	return few
}

// surveys surveys each shape with its sellers and with 64, and either objective.
func surveys(t *testing.T, shapes map[string]shape, limit int, check func(t *testing.T, got tally)) {
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		for _, sellers := range []int{shapes[name].sellers, 64} {
			for _, o := range []protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, sellers, o), func(t *testing.T) {
					s := shapes[name]
					s.sellers = sellers
					got := survey(t, s, o, seeds(2), limit)
					t.Log(got)
					check(t, got)
				})
			}
		}
	}
}

func TestTwentyFiveUnitsAreSolvedExactly(t *testing.T) {
	surveys(t, plain(), 0, func(t *testing.T, got tally) {
		if got.inexact > 0 {
			t.Errorf("%d not exact", got.inexact)
		}
	})
}

func TestTheLimitIsKeptOnHardProblemsAndASetIsFound(t *testing.T) {
	limit := 2_000_000
	if seeds(0) > 0 {
		limit = 0
	}
	surveys(t, hard(), limit, func(*testing.T, tally) {}) // survey checks the sets
}

func BenchmarkOneUnitOfTwentySellers(b *testing.B) {
	s := shape{units: 1, sellers: 20, offers: 1, costs: 30_000_000}
	p := s.random(rand.New(rand.NewPCG(2, 2)))
	for k := range 20 {
		p.Bids = append(p.Bids, bid(k, k, "x", 7000+k, item(0, 1, 9, 4)))
	}
	p.Bids = p.Bids[len(p.Bids)-20:]
	p.Capacity = nil
	b.ReportAllocs()
	for b.Loop() {
		if s, err := clearing.Solve(p); err != nil || !s.Exact {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkTwentyFiveUnitsOfTwentySellers(b *testing.B) {
	for name, s := range plain() {
		b.Run(name, func(b *testing.B) {
			ps := make([]clearing.Problem, 16)
			for i := range ps {
				ps[i] = s.random(rand.New(rand.NewPCG(uint64(i), 1)))
			}
			for i := 0; b.Loop(); i++ {
				if s, err := clearing.Solve(ps[i%len(ps)]); err != nil || s.Status == 0 {
					b.Fatal(fmt.Sprint(s), err)
				}
			}
		})
	}
}

// BenchmarkOneSellerWithManyItems has 1,024 offers of 32 items each from one seller with joint
// cores, beside single offers of others.
func BenchmarkOneSellerWithManyItems(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 7))
	p := clearing.Problem{Units: 64, Objective: protocol.ObjectiveCost, Capacity: map[protocol.AgentID][]protocol.Span{sellerID(0): {{Start: at(0), End: at(600), Cores: 24}}}}
	for i := range 1024 {
		var items []protocol.Item
		for _, u := range r.Perm(p.Units)[:32] {
			start := r.IntN(horizon)
			items = append(items, item(u, start, start+4+r.IntN(8), 1+r.IntN(4)))
		}
		p.Bids = append(p.Bids, bid(0, i, strconv.Itoa(i), 20_000_000+r.IntN(9_000_000), items...))
	}
	for u := range p.Units {
		for k := range 3 {
			p.Bids = append(p.Bids, bid(1+k, k, strconv.Itoa(u), 1_000_000+r.IntN(300_000), item(u, 0, 10, 1)))
		}
	}
	for b.Loop() {
		s, err := clearing.Solve(p)
		if err != nil || s.Status != clearing.Covered {
			b.Fatal(s, err)
		}
		b.ReportMetric(float64(s.Steps)/1e6, "Msteps")
	}
}

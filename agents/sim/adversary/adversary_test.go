package adversary_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// seeds is how many markets of each level every adversary is in; `make soak`
// takes more.
var seeds = flag.Int("seeds", 1, "markets of each level of faults that every adversary is in")

// Whatever an adversary does, honest parties lose nothing, their bids are
// counted, and everything else holds too.
func TestHonestPartiesLoseNothing(t *testing.T) {
	for _, kind := range adversary.Kinds() {
		t.Run(kind, func(t *testing.T) {
			cast, err := adversary.NewCast()
			if err != nil {
				t.Fatal(err)
			}
			var sum market.Result
			bids, seed := 0, 0
			for ; seed < *seeds || stands(sum, bids) && seed < *seeds+moreSeeds; seed++ {
				for _, level := range levels() {
					r := live(t, cast, level, uint64(seed+1), map[string]int{kind: number(kind)})
					sum.Auctions += r.Auctions
					sum.Bought += r.Bought
					sum.Messages += r.Messages
					bids += r.Checks[market.BidsCounted]
				}
			}
			if stands(sum, bids) {
				t.Errorf("%d auctions, %d bought, %d bids looked at: the market stands still", sum.Auctions, sum.Bought, bids)
			}
			t.Logf("%d seeds, %d auctions, %d bought, %d bids, %d messages", seed, sum.Auctions, sum.Bought, bids, sum.Messages)
		})
	}
}

// levels are the faults that the markets live with; heavy ones trade so little that they need many seeds.
func levels() []string {
	if testing.Short() {
		return []string{"light"}
	}
	return []string{"light", "heavy"}
}

// moreSeeds is how many more markets are looked at if few orders were bought in
// the first: some are poor by chance.
const moreSeeds = 8

// stands reports whether a market hardly trades: without any adversary, half of the
// orders are bought.
func stands(sum market.Result, bids int) bool { return sum.Bought*4 < sum.Auctions || bids < 20 }

// number is how many of a kind there are: those that come as a crowd outnumber
// the honest four to one.
func number(kind string) int {
	if kind == "sybils" || kind == "hoarders" {
		return 4
	}
	return 1
}

// All of them together.
func TestHonestPartiesLoseNothingToAll(t *testing.T) {
	cast, err := adversary.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, kind := range adversary.Kinds() {
		all[kind] = 1
	}
	live(t, cast, "light", 1, all)
}

func live(t *testing.T, cast *market.Cast, level string, seed uint64, rogues map[string]int) market.Result {
	t.Helper()
	cfg := market.Default()
	cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate, cfg.Adversaries = seed, sim.Levels()[level], 2*time.Hour, 3, 2, 8, rogues
	m, checks := market.Open(cast, cfg)
	r := m.Live(checks, nil)
	for _, v := range r.Violations {
		t.Errorf("%s, seed %d, %s: %s: %s", level, seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
	}
	return r
}

func TestAnUnknownKindIsNamed(t *testing.T) {
	err := adversary.Validate(map[string]int{"forger": 1, "fool": 1})
	if err == nil || fmt.Sprint(err)[:18] != `adversaries "fool"` {
		t.Errorf("%v", err)
	}
}

// Beside hoarders, honest users buy as large a share of what they order as without them.
func TestHoardersKeepNobodyFromBuying(t *testing.T) {
	cast, err := adversary.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	share := func(rogues map[string]int) float64 {
		orders, bought := 0, 0
		for seed := uint64(1); seed <= 8; seed++ {
			r := live(t, cast, "none", seed, rogues)
			orders, bought = orders+r.Auctions, bought+r.Bought
		}
		t.Logf("%d orders, %d bought, beside %v", orders, bought, rogues)
		return float64(bought) / float64(orders)
	}
	if alone, beside := share(nil), share(map[string]int{"hoarders": 1}); beside < alone*0.99 {
		t.Errorf("%.3f of the orders are bought without hoarders, %.3f beside them; want at least 99 %% of it", alone, beside)
	}
}

// A user whose programs all fail or idle, and who agrees to nothing, pays for the cores
// that it had: in every mode, and before it gets what its programs left.
func TestFreeloadersPay(t *testing.T) {
	cast, err := adversary.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for seed := uint64(1); seed <= 4; seed++ {
		cfg := market.Default()
		cfg.Seed, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate, cfg.Launches = seed, 3*time.Hour, 3, 2, 8, 500
		cfg.Modes = []protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}
		cfg.Adversaries = map[string]int{"freeloads": 2}
		m, checks := market.Open(cast, cfg)
		r := m.Live(checks, nil)
		for _, v := range r.Violations {
			t.Errorf("seed %d, %s: %s: %s", seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
		}
		checked += r.Checks[market.DeliveredIsPaid]
	}
	if checked < 40 {
		t.Errorf("only %d payments and outputs were looked at", checked)
	}
	t.Logf("%d payments and outputs looked at", checked)
}

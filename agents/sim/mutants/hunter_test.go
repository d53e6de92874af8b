package mutants_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"ramp/agents/sim"
	adversaries "ramp/agents/sim/adversary"
	"ramp/agents/sim/explore"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

var (
	hunter    = flag.Bool("hunter", false, "be the program that hunts, which has a mutant's mistake")
	adversary = flag.String("adversary", "", "the only fault of each market, a kind of adversary or "+nobody+"; empty: hostile markets")
)

// nobody selects a market without adversaries or faults.
const nobody = "nobody"

// found is the result of a hunt: the seed with a violation, and the invariant.
type found struct {
	Seed      uint64 `json:"seed"` // zero: no violation
	Invariant string `json:"invariant,omitempty"`
	What      string `json:"what,omitempty"`
}

// TestMain runs hostile markets, seed by seed, until one breaks an invariant, and prints
// which, if this is the hunter. It runs each market twice, to check that the two runs are
// identical.
func TestMain(m *testing.M) {
	flag.Parse()
	if !*hunter {
		os.Exit(m.Run())
	}
	f, err := search()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func search() (found, error) {
	cast, err := adversaries.NewCast()
	if err != nil {
		return found{}, err
	}
	for seed := uint64(1); seed <= *seeds; seed++ {
		if v := broken(cast, config(seed, *adversary)); v != nil {
			return found{seed, v.Invariant, v.What}, nil
		}
	}
	return found{}, nil
}

// broken returns the first violation of a market, or nil.
func broken(cast *market.Cast, cfg market.Config) *market.Violation {
	first := explore.Run(context.Background(), cast, cfg, nil)
	if len(first.Violations) > 0 {
		return &first.Violations[0]
	}
	if again := explore.Run(context.Background(), cast, cfg, nil); again.TraceHash != first.TraceHash {
		return &market.Violation{Invariant: "0-deterministic", What: "the same seed gives " + first.TraceHash + " and " + again.TraceHash}
	}
	return nil
}

// config is a small hostile market, every other one with adversaries of three kinds; or one
// whose only fault is an adversary.
func config(seed uint64, alone string) market.Config {
	cfg := market.Default()
	cfg.Seed = seed
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Length = 4, 4, 10, 3*time.Hour
	switch kinds := adversaries.Kinds(); {
	case alone == nobody:
		cfg.Users, cfg.Length = 3, 2*time.Hour // users that can pay
	case alone != "":
		cfg.Users, cfg.Length = 3, 2*time.Hour
		cfg.Adversaries = map[string]int{alone: 1}
	case seed%2 == 0:
		cfg.Adversaries = map[string]int{}
		for i := range uint64(3) {
			cfg.Adversaries[kinds[(seed/2+5*i)%uint64(len(kinds))]] = 1
		}
		fallthrough
	default:
		cfg.Faults = sim.Levels()["heavy"]
	}
	if alone == "" && seed%14 == 11 { // sellers' journals are lost; only with odd seeds
		cfg.Faults = sim.Levels()["forgetful"]
	}
	if seed%3 == 0 { // bundles are paid after the job, half of them by a bartering bank
		cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
		if cfg.Barter = seed%2 == 1; cfg.Barter {
			cfg.Modes = cfg.Modes[1:]
		}
	}
	cfg.Restore = alone == "" && seed%7 == 2 // in the end the bank is restored from a backup
	if seed%5 == 0 {                         // programs run in the slots
		cfg.Launches = 700
	}
	if seed%5 == 3 && !cfg.Barter { // users exchange money
		cfg.Exchanges = 20
	}
	if seed%5 == 1 && !cfg.Barter { // users order sweeps
		cfg.Sweeps = 8
	}
	return cfg
}

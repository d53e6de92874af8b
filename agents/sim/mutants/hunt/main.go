// Command hunt lives through hostile markets, seed by seed, until one breaks an
// invariant, and says which. It lives through each market twice: the two must be
// the same, event by event. It is the part of the program that is built with a
// mutant's mistake in it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/explore"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// found is what a hunt came to: the seed with the violation, and what broke.
type found struct {
	Seed      uint64 `json:"seed"` // zero: none
	Seeds     uint64 `json:"seeds"`
	Invariant string `json:"invariant,omitempty"`
	What      string `json:"what,omitempty"`
}

func main() {
	most := flag.Uint64("seeds", 500, "seeds to try, from 1")
	wants := flag.String("invariant", "", "the one to break; empty: any")
	flag.Parse()
	f, err := hunt(*most, *wants)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hunt(most uint64, wants string) (found, error) {
	cast, err := adversary.NewCast()
	if err != nil {
		return found{}, err
	}
	for seed := uint64(1); seed <= most; seed++ {
		if v := broken(cast, seed); v != nil && (wants == "" || v.Invariant == wants) {
			return found{seed, seed, v.Invariant, v.What}, nil
		}
	}
	return found{Seeds: most}, nil
}

// broken is what breaks first in the market of a seed, nil if nothing does.
func broken(cast *market.Cast, seed uint64) *market.Violation {
	first := explore.Run(context.Background(), cast, config(seed), nil)
	if len(first.Violations) > 0 {
		return &first.Violations[0]
	}
	if again := explore.Run(context.Background(), cast, config(seed), nil); again.TraceHash != first.TraceHash {
		return &market.Violation{Invariant: "0-deterministic", What: "the same seed gives " + first.TraceHash + " and " + again.TraceHash}
	}
	return nil
}

// config is a small, hostile market; every other one has an adversary of each of
// three kinds in it.
func config(seed uint64) market.Config {
	cfg := market.Default()
	cfg.Seed, cfg.Faults = seed, sim.Levels()["heavy"]
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Length = 4, 4, 10, 3*time.Hour
	if kinds := adversary.Kinds(); seed%2 == 0 {
		cfg.Adversaries = map[string]int{}
		for i := range uint64(3) {
			cfg.Adversaries[kinds[(seed/2+5*i)%uint64(len(kinds))]] = 1
		}
	}
	if seed%3 == 0 { // bundles are paid after the fact, in half of these by a bank that barters
		cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
		if cfg.Barter = seed%2 == 1; cfg.Barter {
			cfg.Modes = cfg.Modes[1:]
		}
	}
	return cfg
}

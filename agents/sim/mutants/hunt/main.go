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

// plan is which markets to live through.
type plan struct {
	seeds     uint64 // from 1
	invariant string // the one to break; empty: any
	adversary string // empty: hostile markets; a kind: it alone in a market where nothing fails; nobody: not even that
}

// nobody is the adversary of a market without any.
const nobody = "nobody"

func main() {
	var p plan
	flag.Uint64Var(&p.seeds, "seeds", 500, "seeds to try, from 1")
	flag.StringVar(&p.invariant, "invariant", "", "the one to break; empty: any")
	flag.StringVar(&p.adversary, "adversary", "", "a kind that is alone in a market where nothing else fails, or "+nobody+"; empty: hostile markets")
	flag.Parse()
	f, err := hunt(p)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hunt(p plan) (found, error) {
	cast, err := adversary.NewCast()
	if err != nil {
		return found{}, err
	}
	for seed := uint64(1); seed <= p.seeds; seed++ {
		if v := broken(cast, p.config(seed)); v != nil && (p.invariant == "" || v.Invariant == p.invariant) {
			return found{seed, seed, v.Invariant, v.What}, nil
		}
	}
	return found{Seeds: p.seeds}, nil
}

// broken is what breaks first in a market, nil if nothing does.
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

// config is a small market: hostile, and every other one with an adversary of
// each of three kinds in it; or one in which an adversary is all that is wrong.
func (p plan) config(seed uint64) market.Config {
	cfg := market.Default()
	cfg.Seed = seed
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Length = 4, 4, 10, 3*time.Hour
	switch kinds := adversary.Kinds(); {
	case p.adversary == nobody:
		cfg.Users, cfg.Length = 3, 2*time.Hour // users that can pay
	case p.adversary != "":
		cfg.Users, cfg.Length = 3, 2*time.Hour
		cfg.Adversaries = map[string]int{p.adversary: 1}
	case seed%2 == 0:
		cfg.Adversaries = map[string]int{}
		for i := range uint64(3) {
			cfg.Adversaries[kinds[(seed/2+5*i)%uint64(len(kinds))]] = 1
		}
		fallthrough
	default:
		cfg.Faults = sim.Levels()["heavy"]
	}
	if p.adversary == "" && seed%14 == 11 { // an odd one: sellers' journals are lost
		cfg.Faults = sim.Levels()["forgetful"]
	}
	if seed%3 == 0 { // bundles are paid after the fact, in half of these by a bank that barters
		cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
		if cfg.Barter = seed%2 == 1; cfg.Barter {
			cfg.Modes = cfg.Modes[1:]
		}
	}
	if seed%5 == 0 { // programs run in what is bought
		cfg.Launches = 700
	}
	return cfg
}

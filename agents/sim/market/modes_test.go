package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// Markets in which bundles are paid after the fact live through the same faults:
// jobs fail, users and sellers crash between record and pay, the bank is killed.
func TestNoSeedBreaksAnInvariantOfPayAfterTheFact(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	mixed := []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
	for _, c := range []struct {
		name   string
		modes  []protocol.Mode
		barter bool
		runs   int // programs, of a thousand orders
		seeds  uint64
	}{
		{"modes mixed", mixed, false, 0, 8},
		{"bartering", mixed[1:], true, 0, 8},
		{"metered programs, suspended and killed", mixed[2:], false, 800, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				c.seeds = 1
			}
			units := 0
			for seed := uint64(1); seed <= c.seeds; seed++ {
				cfg := market.Default()
				cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()["heavy"], 4*time.Hour, 4, 3, 4
				cfg.Modes, cfg.Barter, cfg.Launches = c.modes, c.barter, c.runs
				m, checks := market.Open(cast, cfg)
				m.Live(checks, nil)
				for _, v := range checks.Violations() {
					t.Errorf("seed %d, %s: %s: %s", seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
				}
				units += checks.Counts()[market.PaidForJobs]
			}
			if units == 0 {
				t.Error("no unit was paid after the fact")
			}
			t.Logf("%d looks at pay", units)
		})
	}
}

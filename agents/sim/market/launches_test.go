package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// Users run programs in what they buy, and kill and suspend them, through the same
// faults: a launch has one job, in its slot, which is sold; and in the end both
// sides say the same of it.
func TestNoSeedBreaksAnInvariantOfLaunches(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(12)
	if testing.Short() {
		last = 4
	}
	looks := 0
	for seed := uint64(1); seed <= last; seed++ {
		cfg := market.Default()
		cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()["heavy"], 6*time.Hour, 4, 3, 4
		cfg.Launches = 700
		m, checks := market.Open(cast, cfg)
		m.Live(checks, nil)
		for _, v := range checks.Violations() {
			t.Errorf("seed %d, %s: %s: %s", seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
		}
		looks += checks.Counts()[market.OneJob]
	}
	if looks == 0 {
		t.Error("no program ran")
	}
	t.Logf("%d looks at programs", looks)
}

package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// Whatever fails before, everybody shows a bank that is restored from a backup the
// receipts that it signed since, and has the proofs of all receipts in the end.
func TestARestoredBankIsShownItsReceipts(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	looks := map[string]int{}
	for level, last := range map[string]uint64{"none": 3, "light": 5, "heavy": 5} {
		if testing.Short() {
			last = 1
		}
		for seed := uint64(1); seed <= last; seed++ {
			cfg := market.Default()
			cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()[level], 3*time.Hour, 4, 4, 10
			cfg.Restore = true
			m, checks := market.Open(cast, cfg)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%s, seed %d, %s: %s: %s", level, seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
			}
			looks[market.Readmitted] += checks.Counts()[market.Readmitted]
			looks[market.Proved] += checks.Counts()[market.Proved]
		}
	}
	if looks[market.Readmitted] == 0 || looks[market.Proved] == 0 {
		t.Errorf("looked at %v", looks)
	}
	t.Logf("%v", looks)
}

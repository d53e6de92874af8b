package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// Users order sweeps and change them, on sites some of which fail every task at once, through the same
// faults: a sweep keeps to its terms, no task runs twice at once, and its ledger is the bank's.
func TestNoSeedBreaksAnInvariantOfSweeps(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for level, last := range map[string]uint64{"none": 1, "light": 2, "heavy": 5, "forgetful": 2} {
		if testing.Short() {
			last = 2
		}
		tasks := map[string]int{}
		counts := map[string]int{}
		for seed := uint64(1); seed <= last; seed++ {
			cfg := market.Default()
			cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()[level], 4*time.Hour, 5, 3, 1
			cfg.Sweeps = 2
			m, checks := market.Open(cast, cfg)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%s, seed %d, %s: %s: %s", level, seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
			}
			for name, n := range checks.Counts() {
				counts[name] += n
			}
			countTasks(m, tasks)
		}
		if tasks["done"] == 0 || counts[market.SweepFailures] == 0 {
			t.Errorf("%s: no task was done, or none failed: %v", level, tasks)
		}
		t.Logf("%s: %v; %d looks at terms, %d at attempts, %d at failures, %d at ledgers", level, tasks, counts[market.SweepTerms], counts[market.SweepOnce], counts[market.SweepFailures], counts[market.SweepLedger])
	}
}

// countTasks counts the sweeps and tasks of a market by their states.
func countTasks(m *market.Market, tasks map[string]int) {
	for _, u := range m.Users() {
		sweeps := u.Sweeps()
		if sweeps == nil {
			continue
		}
		for _, s := range sweeps.List(u.Host.Now()) {
			tasks["sweeps "+s.State]++
			tasks["done"] += s.Tasks.Done
			tasks["failed"] += s.Tasks.Failed
			tasks["total"] += s.Tasks.Total
		}
	}
}

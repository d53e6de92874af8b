package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/bank/ledger"
)

// Whatever fails, and even if the bank is restored from a backup in the end, an exchange is
// done once, and its owner learns of it.
func TestAnExchangeIsDoneOnceWhateverFails(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for level, last := range map[string]uint64{"none": 2, "light": 6, "heavy": 20} {
		if testing.Short() {
			last = 2
		}
		done := 0
		for seed := uint64(1); seed <= last; seed++ {
			cfg := market.Default()
			cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()[level], 3*time.Hour, 1, 4, 1
			cfg.Exchanges, cfg.Restore = 20, seed%2 == 0
			m, checks := market.Open(cast, cfg)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%s, seed %d, %s: %s: %s", level, seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
			}
			done += exchanges(t, m)
		}
		if done == 0 {
			t.Errorf("%s: nothing was exchanged", level)
		}
		t.Logf("%s: %d exchanges", level, done)
	}
}

// exchanges counts the bank's.
func exchanges(t *testing.T, m *market.Market) (n int) {
	t.Helper()
	err := m.Bank().Disk().Each(ledger.TableEntries, func(key string, value []byte) error {
		e, err := ledger.DecodeEntry(key, value)
		if e.Kind == ledger.KindExchange {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/bank/ledger"
)

// Whatever fails, and even if the bank is restored from a backup in the end, an exchange and
// an order of the operator is done once, and who ordered it learns of it.
func TestAnOrderIsDoneOnceWhateverFails(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for level, last := range map[string]uint64{"none": 2, "light": 6, "heavy": 20} {
		if testing.Short() {
			last = 2
		}
		done := map[ledger.Kind]int{}
		for seed := uint64(1); seed <= last; seed++ {
			cfg := market.Default()
			cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()[level], 3*time.Hour, 1, 4, 1
			cfg.Exchanges, cfg.Restore = 20, seed%2 == 0
			m, checks := market.Open(cast, cfg)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%s, seed %d, %s: %s: %s", level, seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
			}
			count(t, m, done)
		}
		if credits := done[ledger.KindCredit]; done[ledger.KindExchange] == 0 || done[ledger.KindTransfer] == 0 || credits == 0 {
			t.Errorf("%s: nothing was exchanged, transferred or credited: %v", level, done)
		}
		t.Logf("%s: %d exchanges, %d transfers, %d credits", level, done[ledger.KindExchange], done[ledger.KindTransfer], done[ledger.KindCredit])
	}
}

// count counts the bank's entries that were ordered, without what it began with.
func count(t *testing.T, m *market.Market, done map[ledger.Kind]int) {
	t.Helper()
	err := m.Bank().Disk().Each(ledger.TableEntries, func(key string, value []byte) error {
		e, err := ledger.DecodeEntry(key, value)
		if e.Ref != market.AtTheBeginning {
			done[e.Kind]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

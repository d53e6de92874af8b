package market_test

import (
	"runtime/debug"
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// A market makes much data that is soon dropped, in a small heap: at Go's default a quarter
// of these tests' time goes to the garbage collector. This takes some 100 MB more.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

func TestTheSameSeedIsTheSameMarket(t *testing.T) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for name, faults := range sim.Levels() {
		t.Run(name, func(t *testing.T) {
			cfg := market.Default()
			cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = faults, 4*time.Hour, 5, 3, 10
			if testing.Short() {
				cfg.Length = time.Hour
			}
			var hash string
			for range 2 {
				m, checks := market.Open(cast, cfg)
				m.Live(checks, nil)
				for _, v := range checks.Violations() {
					t.Errorf("%+v", v)
				}
				t.Logf("%v", checks.Counts())
				if hash == "" {
					hash = m.World.Hash()
					t.Logf("%+v", m.World.Stats())
				} else if hash != m.World.Hash() {
					t.Errorf("%s, then %s", hash, m.World.Hash())
				}
			}
		})
	}
}

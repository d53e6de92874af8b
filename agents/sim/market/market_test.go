package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

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

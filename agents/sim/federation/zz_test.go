package federation_test

import (
	"ramp/agents/sim"
	"ramp/agents/sim/federation"
	"testing"
)

func TestZZ(t *testing.T) {
	c := cast(t)
	for seed := uint64(100); seed < 220; seed++ {
		w := federation.Open(c, federation.Random(seed, 4, 60, sim.Levels()["heavy"], 12))
		w.Live(never)
		for _, v := range w.Violations {
			t.Errorf("%d: %s", seed, v)
		}
	}
}

package federation_test

import (
	"testing"

	"ramp/agents/sim"
	"ramp/agents/sim/federation"
)

func never() bool { return false }

func cast(t *testing.T) *federation.Cast {
	c, err := federation.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNothingBreaksUnderFaults(t *testing.T) {
	c := cast(t)
	for _, level := range []string{"none", "light", "heavy"} {
		begun, paused, crashes := 0, 0, int64(0)
		for seed := range uint64(6) {
			w := federation.Open(c, federation.Random(seed, 4, 40, sim.Levels()[level], 6))
			w.Live(never)
			for _, v := range w.Violations {
				t.Errorf("%s faults, seed %d: %s", level, seed, v)
			}
			crashes += w.Stats().Crashes
			for _, f := range w.Fates() {
				begun, paused = begun+f.Begun, paused+f.Paused
			}
		}
		if begun == 0 || paused == 0 || level == "heavy" && crashes == 0 || level == "none" && crashes > 0 {
			t.Errorf("%s faults: %d begun, %d paused, %d crashes: the test tests nothing", level, begun, paused, crashes)
		}
	}
}

func TestHostileFederations(t *testing.T) {
	sum, err := federation.Explore(t.Context(), 1, 80, 2, sim.Levels()["heavy"], func(federation.Sum) {})
	if err != nil || sum.Seeds == 0 || sum.Suspended == 0 || sum.Crashes == 0 {
		t.Fatalf("%+v: %v", sum, err)
	}
	for _, v := range sum.Violations {
		t.Errorf("seed %d: %s", sum.Failed, v)
	}
}

func TestASeedRepeats(t *testing.T) {
	hash := func() string {
		w := federation.Open(cast(t), federation.Random(5, 4, 20, sim.Levels()["heavy"], 3))
		w.Live(never)
		return w.Hash()
	}
	if a, b := hash(), hash(); a != b {
		t.Errorf("one seed, two runs: %s and %s", a, b)
	}
}

func TestLiarsChangeNothing(t *testing.T) {
	c := cast(t)
	for i, kind := range federation.Kinds() {
		for seed := range uint64(3) {
			cfg := federation.Random(seed, 4, 30, sim.Levels()["light"], 6)
			cfg.Liars = []string{kind}
			w := federation.Open(c, cfg)
			w.Live(never)
			for _, v := range w.Violations {
				t.Errorf("%s (%d), seed %d: %s", kind, i, seed, v)
			}
		}
	}
}

package explore_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"ramp/agents/sim"
	"ramp/agents/sim/explore"
	"ramp/agents/sim/market"
)

// small is a hostile market of a few hours.
func small() market.Config {
	cfg := market.Default()
	cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = sim.Levels()["heavy"], 2*time.Hour, 3, 2, 6
	return cfg
}

func newCast(t *testing.T) *market.Cast {
	t.Helper()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	return cast
}

func TestSeedsSideBySideAreThoseOneByOne(t *testing.T) {
	side, err := explore.Explore(context.Background(), explore.Plan{Market: small(), From: 1, To: 6, Jobs: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cast, messages := newCast(t), int64(0)
	for seed := uint64(1); seed <= 6; seed++ {
		cfg := small()
		cfg.Seed = seed
		messages += explore.Run(context.Background(), cast, cfg, nil).Messages
	}
	if !side.Complete || side.Seeds != 6 || side.Messages != messages {
		t.Errorf("got %+v, want 6 seeds and %d messages", side, messages)
	}
}

func TestAnInterruptedRunIsMarked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	long := small()
	long.Length, long.Heartbeat = 48*time.Hour, 10*time.Second // more events than between two looks
	if r := explore.Run(ctx, newCast(t), long, nil); r.Complete {
		t.Error("complete")
	}
	sum, err := explore.Explore(ctx, explore.Plan{Market: long, From: 1, To: 100, Jobs: 2}, nil)
	if err != nil || sum.Complete {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestAScenarioIsReadAsItWasWritten(t *testing.T) {
	want := explore.Scenario{Version: explore.ScenarioVersion, Note: "n", Market: small()}
	b, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got explore.Scenario
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	cast := newCast(t)
	if a, b := explore.Run(context.Background(), cast, got.Market, nil), explore.Run(context.Background(), cast, want.Market, nil); a.TraceHash != b.TraceHash {
		t.Errorf("another market than before: %s, %s", a.TraceHash, b.TraceHash)
	}
}

// Every scenario that once broke an invariant is kept, and lived through again.
func TestFormerFailuresStayFixed(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	cast := newCast(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var s explore.Scenario
			if err := yaml.Unmarshal(b, &s); err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			r := explore.Run(context.Background(), cast, s.Market, nil)
			for _, v := range r.Violations {
				t.Errorf("%s: %s: %s", v.At.Format(time.TimeOnly), v.Invariant, v.What)
			}
			if !r.Complete || r.Auctions == 0 {
				t.Errorf("nothing happened: %+v", r)
			}
		})
	}
}

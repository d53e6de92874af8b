package market_test

import (
	"flag"
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// seeds is how many hostile markets a test lives through of each kind; `make soak` takes
// as many as there is time for.
var seeds = flag.Uint64("seeds", 60, "hostile markets of each kind")

func TestNoSeedBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	lives(t, "heavy", *seeds, nil)
}

// Sellers whose journals are lost, or put back to older ones, keep what they sold.
func TestNoSeedOfForgetfulSellersBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	lives(t, "forgetful", *seeds/4, func(cfg *market.Config) {
		if cfg.Seed%3 == 0 {
			cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
		}
		if cfg.Seed%5 == 0 {
			cfg.Launches = 400
		}
	})
}

// Slots that sweeps gave back, that jobs outlast and that sites give back before they begin, in
// journals that are lost or put back to older ones: each seed once broke a check.
func TestNoSeedOfForgetfulSellersWithSweepsBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []uint64{71052, 71069, 71081} {
		cfg := market.Default()
		cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()["forgetful"], 144*time.Minute, 6, 4, 6
		cfg.Launches, cfg.Exchanges, cfg.Sweeps, cfg.Overbook = 300, 1, .5, true
		live(t, cast, cfg)
	}
}

func live(t *testing.T, cast *market.Cast, cfg market.Config) {
	t.Helper()
	m, checks := market.Open(cast, cfg)
	m.Live(checks, nil)
	for _, v := range checks.Violations() {
		t.Errorf("seed %d, %s: %s: %s", cfg.Seed, v.At.Format(time.TimeOnly), v.Invariant, v.What)
	}
}

// Clocks that are set wrong and right again, at any party and at any time, cost nobody
// money, leak no hold and let nothing be decided twice: by up to a day, and by up to an
// hour beside all other faults.
func TestNoSeedOfJumpingClocksBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	for level, most := range map[string]time.Duration{"light": 72 * time.Hour, "heavy": time.Hour} {
		lives(t, level, *seeds/4, func(cfg *market.Config) {
			cfg.Faults.Jumps = sim.Range{Least: 24, Most: 400}
			cfg.Faults.Jump = sim.Span{Least: -most, Most: most}
			cfg.Launches = int(cfg.Seed%2) * 300
			if cfg.Seed%3 == 0 {
				cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
			}
		})
	}
}

// Each of these seeds of jumping clocks once broke a check.
func TestClocksThatJumpBreakNoInvariant(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		level    string
		most     time.Duration
		seed     uint64
		launches int
	}{{"nothing else", 23 * time.Hour, 34, 0}, {"nothing else", 72 * time.Hour, 5, 300}, {"heavy", time.Hour, 179, 0}, {"heavy", time.Hour, 681, 0}} {
		cfg := market.Default()
		cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = c.seed, sim.Levels()[c.level], 4*time.Hour, 4, 2, 4
		cfg.Faults.Jumps, cfg.Faults.Jump = sim.Range{Least: 24, Most: 400}, sim.Span{Least: -c.most, Most: c.most}
		cfg.Launches = c.launches
		if c.seed%3 == 0 {
			cfg.Modes = []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}
		}
		live(t, cast, cfg)
	}
}

func lives(t *testing.T, level string, last uint64, and func(cfg *market.Config)) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		last = max(1, last/40)
	}
	for seed := uint64(1); seed <= last; seed++ {
		cfg := market.Default()
		cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()[level], 4*time.Hour, 4, 2, 4
		if and != nil {
			and(&cfg)
		}
		live(t, cast, cfg)
	}
}

package market_test

import (
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// BenchmarkDay is a day of twenty sites and five users with light faults.
func BenchmarkDay(b *testing.B) {
	cfg := market.Default()
	cfg.Faults = sim.Levels()["light"]
	benchmark(b, cfg)
}

// BenchmarkCrowd is half an hour of a thousand sites and a hundred users.
func BenchmarkCrowd(b *testing.B) {
	cfg := market.Default()
	cfg.Resources, cfg.Users, cfg.Length, cfg.Heartbeat = 1000, 100, 30*time.Minute, 10*time.Minute
	benchmark(b, cfg)
}

func benchmark(b *testing.B, cfg market.Config) {
	cast, err := market.NewCast()
	if err != nil {
		b.Fatal(err)
	}
	var messages int64
	var passed time.Duration
	for b.Loop() {
		m, checks := market.Open(cast, cfg)
		r := m.Live(checks, nil)
		messages += r.Messages
		passed += m.World.Elapsed()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
	b.ReportMetric(passed.Seconds()/b.Elapsed().Seconds(), "x-real-time")
}

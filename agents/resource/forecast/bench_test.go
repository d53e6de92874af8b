package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ramp/agents/resource/forecast"
)

// full is a forecast that has learnt from 100,000 jobs, half of them ended.
func full() *forecast.Forecast {
	r := rand.New(rand.NewPCG(1, 1))
	f := &forecast.Forecast{}
	for range 100_000 {
		cores := 1 + r.IntN(100)
		f.Started(cores, r.Int64N(100_000), forecast.Bound{})
		f.Ended(cores, 3600, r.Int64N(3600))
	}
	return f
}

func BenchmarkStarted(b *testing.B) {
	f, r := full(), rand.New(rand.NewPCG(2, 2))
	for b.Loop() {
		f.Started(1+r.IntN(100), r.Int64N(100_000), forecast.Bound{Seconds: 5, Known: true})
	}
}

func BenchmarkWaitBound(b *testing.B) {
	f := full()
	for b.Loop() {
		f.WaitBound(70, forecast.Usual())
	}
}

func BenchmarkStartWithin(b *testing.B) {
	f := full()
	for b.Loop() {
		f.StartWithin(70, 50_000, .95)
	}
}

// A history of at most MaxExact observations is the dearest to ask.
func BenchmarkStartWithinExactly(b *testing.B) {
	for _, n := range []int{59, forecast.MaxExact} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := &forecast.Forecast{}
			for i := range n {
				f.Started(1, int64(i*7919%n), forecast.Bound{})
			}
			for b.Loop() {
				f.StartWithin(1, int64(n/2), .95)
			}
		})
	}
}

func BenchmarkBusyUntil(b *testing.B) {
	f := full()
	for b.Loop() {
		f.BusyUntil(forecast.Claim{Cores: 70, Requested: 7200}, 1800, forecast.Usual())
	}
}

func BenchmarkEncode(b *testing.B) {
	f := full()
	for b.Loop() {
		b.SetBytes(int64(len(f.Encode())))
	}
}

func BenchmarkDecode(b *testing.B) {
	state := full().Encode()
	b.SetBytes(int64(len(state)))
	for b.Loop() {
		if _, err := forecast.Decode(state); err != nil {
			b.Fatal(err)
		}
	}
}

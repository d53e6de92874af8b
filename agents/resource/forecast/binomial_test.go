package forecast_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
)

func drawLevel(t *rapid.T) forecast.Level {
	share := rapid.Float64Range(.01, .99)
	return forecast.Level{Quantile: share.Draw(t, "quantile"), Confidence: share.Draw(t, "confidence")}
}

func TestRankIsTheOneOfTheBinomialDistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, l := rapid.IntRange(1, 200).Draw(t, "n"), drawLevel(t)
		sums := below(n, l.Quantile)
		if near(sums, l.Confidence) {
			t.Skip("a tie that doubles cannot tell")
		}
		k, ok := l.Rank(n)
		if want := rank(sums, l.Confidence); ok != (want <= n) || ok && k != want {
			t.Fatalf("rank of %d at %+v: %d %v, want %d", n, l, k, ok, want)
		}
	})
}

func TestTheLargestExactRanksAreExact(t *testing.T) {
	for _, q := range []float64{.01, .25, .5, .95, .99} {
		sums := below(forecast.MaxExact, q)
		for _, c := range []float64{.05, .5, .95, .99} {
			k, _ := forecast.Level{Quantile: q, Confidence: c}.Rank(forecast.MaxExact)
			if want := rank(sums, c); k != want {
				t.Errorf("q %g, confidence %g: rank %d, want %d", q, c, k, want)
			}
		}
	}
}

func TestLeastHistoryOfTheUsualLevel(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 58: 0, 59: 59, 92: 92, 93: 92, 1000: 962} {
		k, ok := forecast.Usual().Rank(n)
		if !ok {
			k = 0
		}
		if k != want {
			t.Errorf("rank of %d: %d, want %d", n, k, want)
		}
	}
}

// The accuracy of the normal distribution that the package promises.
func TestLargeRanksAreNearTheExact(t *testing.T) {
	for _, n := range []int{forecast.MaxExact + 1, 1700, 4000} {
		for _, q := range []float64{.01, .05, .5, .75, .95, .99} {
			sums := below(n, q)
			for _, c := range []float64{.01, .05, .5, .9, .95, .99} {
				k, _ := forecast.Level{Quantile: q, Confidence: c}.Rank(n)
				off := 1
				if q < .5 {
					off = 2
				}
				if want := rank(sums, c); k < want-off || k > want+off {
					t.Errorf("n %d, q %g, confidence %g: rank %d, exactly %d", n, q, c, k, want)
				}
			}
		}
	}
}

func TestCoveredIsTheLargestQuantileOfTheRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		c := rapid.Float64Range(.01, .99).Draw(t, "confidence")
		q := forecast.Covered(n, k, c)
		want := new(big.Float).SetFloat64(c)
		// P(fewer than k) falls as q grows: at q it is c.
		for d, sign := range map[float64]int{-1e-9: 1, 1e-9: -1} {
			if x := q + d; x > 0 && x < 1 && below(n, x)[k].Cmp(want) != sign {
				t.Fatalf("%d of %d at %g: covered %.12f is not the edge", k, n, c, q)
			}
		}
	})
}

func TestCoveredIsTheInverseOfLargeRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(forecast.MaxExact+1, forecast.MaxHistory).Draw(t, "n")
		l := drawLevel(t)
		k, ok := l.Rank(n)
		if !ok {
			t.Skip("no bound")
		}
		if q := forecast.Covered(n, k, l.Confidence); q < l.Quantile-1e-9 {
			t.Fatalf("rank %d of %d at %+v covers only %.9f", k, n, l, q)
		}
		if q := forecast.Covered(n, k-1, l.Confidence); q > l.Quantile+1e-9 {
			t.Fatalf("rank %d of %d at %+v: one less covers %.9f", k, n, l, q)
		}
	})
}

func TestCoveredGrowsWithTheRank(t *testing.T) {
	for _, n := range []int{1, 59, forecast.MaxExact, forecast.MaxExact + 1, forecast.MaxHistory} {
		last := 0.0
		for k := range n + 1 {
			q := forecast.Covered(n, k, .95)
			if q < last || q > 1 || math.IsNaN(q) || k > 0 && q == last {
				t.Fatalf("%d of %d covers %g, one less %g", k, n, q, last)
			}
			last = q
		}
	}
}

func TestLevelsAreBetweenZeroAndOne(t *testing.T) {
	for _, x := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1)} {
		if (forecast.Level{Quantile: x, Confidence: .5}).Validate() == nil {
			t.Errorf("quantile %g is allowed", x)
		}
		if (forecast.Level{Quantile: .5, Confidence: x}).Validate() == nil {
			t.Errorf("confidence %g is allowed", x)
		}
	}
	if err := forecast.Usual().Validate(); err != nil {
		t.Error(err)
	}
}

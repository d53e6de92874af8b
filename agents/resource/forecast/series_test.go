package forecast_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
)

// regime draws waits that stay around a level for a while, and now and then jump
// after a long quiet, so that there are changes.
func regime(t *rapid.T, n int) []int64 {
	var list []int64
	if rapid.Bool().Draw(t, "quiet") {
		list = quietThenRising(rapid.Uint64().Draw(t, "seed"))
	}
	for len(list) < n {
		top := rapid.SampledFrom([]int64{0, 3, 100, 5000, 900_000}).Draw(t, "top")
		list = append(list, rapid.SliceOfN(rapid.Int64Range(0, top), 1, 90).Draw(t, "waits")...)
	}
	return list[:n]
}

// quietThenRising is 90 short waits and 30 after them, each longer than all before.
func quietThenRising(seed uint64) (list []int64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range 90 {
		list = append(list, r.Int64N(1000))
	}
	for i := range int64(30) {
		list = append(list, 1000*(i+1)+r.Int64N(1000))
	}
	return list
}

func TestSeriesIsTheNaiveOneWhenTheLevelChanges(t *testing.T) {
	for seed := range uint64(20) {
		var s forecast.Series
		o := naive{usual: ranks{}}
		for i, x := range quietThenRising(seed) {
			s.Learn(x)
			o.learn(x)
			if s.Len() != len(o.list) {
				t.Fatalf("seed %d, after %d: %d observations count, want %d", seed, i+1, s.Len(), len(o.list))
			}
		}
		if s.Changes() == 0 {
			t.Errorf("seed %d: thirty waits, each longer than all before, are no change", seed)
		}
	}
}

func TestSeriesIsTheNaiveOne(t *testing.T) {
	cache := ranks{}
	rapid.Check(t, func(t *rapid.T) {
		var s forecast.Series
		o := naive{usual: cache}
		level := drawLevel(t)
		for i, x := range regime(t, rapid.IntRange(60, 220).Draw(t, "n")) {
			s.Learn(x)
			o.learn(x)
			if s.Len() != len(o.list) && o.doubtful { // two histories from here on
				return
			}
			if s.Len() != len(o.list) {
				t.Fatalf("after %d: %d observations count, want %d", i+1, s.Len(), len(o.list))
			}
		}
		compare(t, &s, &o, level)
	})
}

func compare(t *rapid.T, s *forecast.Series, o *naive, l forecast.Level) {
	want, known := o.bound(l)
	if got, ok := s.Bound(l); !near(below(len(o.list), l.Quantile), l.Confidence) && (ok != known || got != want) {
		t.Fatalf("bound at %+v: %d %v, want %d %v", l, got, ok, want, known)
	}
	x := rapid.SampledFrom(o.list).Draw(t, "x")
	above := naive{list: slices.DeleteFunc(o.sorted(), func(y int64) bool { return y <= x })}
	want, known = above.bound(l)
	if got, ok := s.BoundAbove(x, l); !near(below(len(above.list), l.Quantile), l.Confidence) && (ok != known || got != want) {
		t.Fatalf("bound above %d at %+v: %d %v, want %d %v", x, l, got, ok, want, known)
	}
	m := len(o.list) - len(above.list)
	got, ok := s.Within(x, l.Confidence)
	if ok != (len(o.list) >= forecast.LeastHistory) || ok && got != forecast.Covered(len(o.list), m, l.Confidence) {
		t.Fatalf("within %d: %g %v, with %d of %d", x, got, ok, m, len(o.list))
	}
}

func TestBoundOfAProbabilityIsNotLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s forecast.Series
		for _, x := range regime(t, rapid.IntRange(59, 400).Draw(t, "n")) {
			s.Learn(x)
		}
		c := rapid.Float64Range(.05, .99).Draw(t, "confidence")
		d := rapid.Int64Range(0, 1_000_000).Draw(t, "deadline")
		q, ok := s.Within(d, c)
		if !ok || q <= 1e-5 {
			t.Skip("nothing to say")
		}
		if b, ok := s.Bound(forecast.Level{Quantile: q - 1e-6, Confidence: c}); !ok || b > d {
			t.Fatalf("within %d with %g, but the bound is %d %v", d, q, b, ok)
		}
		if b, ok := s.Bound(forecast.Level{Quantile: min(q+1e-6, 1-1e-6), Confidence: c}); q < 1-2e-6 && ok && b <= d {
			t.Fatalf("within %d with no more than %g, but the bound of more is %d", d, q, b)
		}
	})
}

func TestSteadyWaitsAreNoChange(t *testing.T) {
	var s forecast.Series
	for i := range 1000 {
		s.Learn(int64(i * 7919 % 1000))
	}
	if s.Changes() != 0 || s.Len() != 1000 {
		t.Errorf("%d changes, %d observations", s.Changes(), s.Len())
	}
}

func TestAJumpKeepsTheLastFiftyNine(t *testing.T) {
	var s forecast.Series
	for i := range 1000 {
		s.Learn(int64(i * 7919 % 1000))
	}
	misses := 0
	for s.Changes() == 0 && misses < 100 {
		s.Learn(50_000)
		misses++
	}
	// The waits before tell little of each other, the run of equal ones does.
	if misses != 5 || s.Len() != forecast.LeastHistory {
		t.Errorf("a change after %d misses, %d observations left", misses, s.Len())
	}
	if b, ok := s.Bound(forecast.Usual()); !ok || b != 50_000 {
		t.Errorf("bound %d %v", b, ok)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var s forecast.Series
	for i := range forecast.MaxHistory + 5000 {
		s.Learn(int64(i * 7919 % 10007))
	}
	if s.Len() != forecast.MaxHistory {
		t.Fatalf("%d observations", s.Len())
	}
	// What is left are the last ones, so the least k-th smallest can be reckoned.
	var kept []int64
	for i := 5000; i < forecast.MaxHistory+5000; i++ {
		kept = append(kept, int64(i*7919%10007))
	}
	slices.Sort(kept)
	k, _ := forecast.Usual().Rank(len(kept))
	if b, _ := s.Bound(forecast.Usual()); b != kept[k-1] {
		t.Errorf("bound %d, want %d", b, kept[k-1])
	}
}

func TestImpossibleObservationsAreClipped(t *testing.T) {
	var s forecast.Series
	for range forecast.LeastHistory {
		s.Learn(-5)
	}
	if b, ok := s.Bound(forecast.Usual()); !ok || b != 0 {
		t.Errorf("bound %d %v", b, ok)
	}
	for range 3 {
		s.Learn(1 << 62)
	}
	if b, ok := s.Bound(forecast.Usual()); !ok || b != forecast.MaxValue {
		t.Errorf("bound %d %v", b, ok)
	}
}

package forecast_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
)

func TestClustersAreThoseOfTheMethod(t *testing.T) {
	for cores, want := range map[int]string{1: "1-4", 4: "1-4", 5: "5-16", 16: "5-16", 17: "17-64", 64: "17-64", 65: "65+", 1 << 30: "65+"} {
		if got := forecast.ClusterName(forecast.Cluster(cores)); got != want {
			t.Errorf("%d cores: %s, want %s", cores, got, want)
		}
	}
}

// taught is a forecast of which jobs of two cores waited 1..100 seconds.
func taught() *forecast.Forecast {
	f := &forecast.Forecast{}
	for i := range 100 {
		f.Started(2, int64((i*37)%100+1), forecast.Bound{})
	}
	return f
}

func TestWaitsOfOneClusterSayNothingOfAnother(t *testing.T) {
	f := taught()
	if b := f.WaitBound(3, forecast.Usual()); !b.Known || b.Seconds != 99 {
		t.Errorf("3 cores: %+v", b)
	}
	if b := f.WaitBound(5, forecast.Usual()); b.Known {
		t.Errorf("5 cores: %+v", b)
	}
	if _, ok := f.StartWithin(5, 1000, .95); ok {
		t.Error("5 cores: a probability from nothing")
	}
}

func TestStartWithinGrowsWithTheDeadline(t *testing.T) {
	f := taught()
	last := -1.0
	for _, d := range []int64{-1, 0, 1, 50, 95, 100, 1000} {
		p, ok := f.StartWithin(1, d, .95)
		if !ok || p < last || d > 0 && p >= float64(min(d, 100))/100 {
			t.Errorf("within %d: %g %v", d, p, ok)
		}
		last = p
	}
}

func TestOnlyToldBoundsAreScored(t *testing.T) {
	var f forecast.Forecast
	f.Started(1, 10, forecast.Bound{})
	f.Started(1, 10, forecast.Bound{Seconds: 10, Known: true})
	f.Started(70, 11, forecast.Bound{Seconds: 10, Known: true})
	if got := f.Total(); got != (forecast.Score{Told: 2, Held: 1}) {
		t.Errorf("in total %+v", got)
	}
	if got := f.Score(3); got != (forecast.Score{Told: 1}) {
		t.Errorf("65+ %+v", got)
	}
	if _, ok := f.Score(1).Rate(); ok {
		t.Error("a rate of nothing")
	}
}

// Whoever runs half of what they ask for, or all of it, is busy for as long.
func TestBusyUntilFollowsWhatJobsDid(t *testing.T) {
	f := &forecast.Forecast{}
	job := forecast.Claim{Cores: 1, Start: 1000, Requested: 1000}
	median := forecast.Level{Quantile: .5, Confidence: .95}
	if got := f.BusyUntil(job, 1000, median); got != 2000 {
		t.Errorf("nothing learnt: busy until %d", got)
	}
	for i := range 300 {
		f.Ended(1, 100, []int64{50, 50, 90}[i%3])
	}
	for _, c := range []struct{ now, want int64 }{
		{1000, 1500}, {1499, 1500}, {1500, 1900}, {1899, 1900}, {1900, 2000}, {1999, 2000}, {2500, 2000},
	} {
		if got := f.BusyUntil(job, c.now, median); got != c.want {
			t.Errorf("at %d: busy until %d, want %d", c.now, got, c.want)
		}
	}
	if got := f.BusyUntil(job, 1000, forecast.Usual()); got != 1900 {
		t.Errorf("at the usual level: busy until %d", got)
	}
	if got := f.RunBound(1, 60, median); got != 30 {
		t.Errorf("a job of a minute runs %d s", got)
	}
	if got := f.RunBound(5, 60, median); got != 60 {
		t.Errorf("a job of an unknown size runs %d s", got)
	}
}

func TestBusyUntilIsAfterNowAndNotAfterTheEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &forecast.Forecast{}
		parts := make([]float64, 150) // of the requested times; the last of them are never forgotten
		least := rapid.Int64Range(0, 1).Draw(t, "least run")
		for i := range parts {
			requested, run := rapid.Int64Range(1, 1000).Draw(t, "requested"), rapid.Int64Range(least, 1200).Draw(t, "run")
			f.Ended(1, requested, run)
			parts[i] = float64(run) / float64(requested)
		}
		job := forecast.Claim{Cores: 1, Start: rapid.Int64Range(-100, 100).Draw(t, "start"), Requested: rapid.Int64Range(1, 1<<40).Draw(t, "wanted")}
		now := rapid.Int64Range(-200, job.Start+job.Requested-1).Draw(t, "now")
		known := slices.Min(parts[len(parts)-forecast.LeastHistory:]) > max(0, float64(now-job.Start)/float64(job.Requested))+2e-6
		level := drawLevel(t)
		end := f.BusyUntil(job, now, level)
		if end <= now || end > job.Start+job.Requested {
			t.Fatalf("%+v at %d: busy until %d", job, now, end)
		}
		if p := f.Holds(job, now, end, level.Confidence); known && end < job.Start+job.Requested && end > now+1 && p > 1-level.Quantile+1e-3 {
			t.Fatalf("%+v at %d: busy until %d at %+v, but held then with %g", job, now, end, level, p)
		}
	})
}

func TestShortfallWeighsWhatRuns(t *testing.T) {
	f := &forecast.Forecast{}
	for i := range 4000 {
		f.Ended(1, 100, int64(50+i%2*40)) // half of the jobs end at half time
	}
	jobs := make([]forecast.Claim, 100)
	for i := range jobs {
		jobs[i] = forecast.Claim{Cores: 1, Requested: 100}
	}
	for _, c := range []struct {
		at        int64
		room      int
		low, high float64
	}{
		{100, 0, 0, 0},      // all are over by then
		{60, 100, 0, 0},     // they all have room
		{60, 70, 0, .01},    // about fifty are left
		{60, 50, .3, .8},    // just about as many
		{60, 30, .99, 1},    // too many
		{10, 99, 1, 1},      // none ends so soon
		{0, 99, 1, 1},       // now all run
		{60, -1, .99999, 1}, // no room at all
	} {
		if got := f.Shortfall(jobs, 0, c.at, c.room, .5); got < c.low || got > c.high {
			t.Errorf("room for %d at %d: %g, want %g..%g", c.room, c.at, got, c.low, c.high)
		}
	}
	if got := (&forecast.Forecast{}).Shortfall(jobs, 0, 60, 99, .95); got != 1 {
		t.Errorf("nothing learnt: %g", got)
	}
}

func TestJobsWithoutRequestTeachNothing(t *testing.T) {
	f := &forecast.Forecast{}
	for range 100 {
		f.Ended(1, 0, 10)
		f.Ended(1, -1, 10)
		f.Ended(1, 10, -1)
	}
	if n := f.Runs(0).Len(); n != 0 {
		t.Errorf("%d run times learnt", n)
	}
	for _, c := range []forecast.Claim{{Cores: 1}, {Cores: 1, Requested: -5}, {Cores: 1, Requested: 1 << 60}} {
		if got := f.BusyUntil(c, -10, forecast.Usual()); got != c.Requested {
			t.Errorf("%+v: busy until %d", c, got)
		}
	}
}

package forecast_test

import (
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
)

// claims draws running jobs of a site that has learnt something.
func claims(t *rapid.T) (*forecast.Forecast, []forecast.Claim) {
	f := &forecast.Forecast{}
	for range rapid.IntRange(0, 200).Draw(t, "learnt") {
		f.Ended(rapid.IntRange(1, 20).Draw(t, "of cores"), 1000, rapid.Int64Range(0, 1300).Draw(t, "ran"))
	}
	var list []forecast.Claim
	for range rapid.IntRange(0, 12).Draw(t, "running") {
		list = append(list, forecast.Claim{
			Cores: rapid.IntRange(1, 20).Draw(t, "cores"), Start: rapid.Int64Range(-2000, 0).Draw(t, "start"), Requested: rapid.Int64Range(1, 4000).Draw(t, "requested"),
		})
	}
	return f, list
}

// The occupancy is the least number of cores that bounds the risk. The oracle tries all sizes.
func TestOccupancyIsTheLeastThatBoundsTheRisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, running := claims(t)
		at, risk := rapid.Int64Range(0, 5000).Draw(t, "at"), float64(rapid.IntRange(0, 100).Draw(t, "risk"))/100
		want := 0
		for f.Shortfall(running, 0, at, want, .95) > risk {
			want++
		}
		if got := f.Occupancy(running, 0, at, risk, .95); got != want {
			t.Fatalf("%d cores, want %d", got, want)
		}
		if later := f.Occupancy(running, 0, at+rapid.Int64Range(0, 5000).Draw(t, "later"), risk, .95); later > want {
			t.Fatalf("later %d cores, at first %d: jobs only end", later, want)
		}
	})
}

// A shortened snapshot has the same jobs, none of which is longer than before, and
// the one that was given stays as it is.
func TestShortenedJobsAreNeverLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, running := claims(t)
		s := workload.Snapshot{Capacity: 100}
		for i, c := range running {
			s.Running = append(s.Running, workload.Running{Number: int32(i), Cores: c.Cores, End: c.Start + c.Requested + rapid.Int64Range(0, 1).Draw(t, "later")})
			s.Waiting = append(s.Waiting, workload.Waiting{Number: int32(i), Cores: c.Cores, Wall: c.Requested})
		}
		got := f.Shorten(s, func(r workload.Running) forecast.Claim { return running[r.Number] }, forecast.UsualView().Level)
		for i, c := range running {
			was, is := s.Running[i], got.Running[i]
			if c.Start+c.Requested < was.End && is != was {
				t.Fatalf("a job that may outlast its time ends at %d, told %d", is.End, was.End)
			}
			if is.End > was.End || is.Cores != was.Cores || got.Waiting[i].Wall > c.Requested || s.Waiting[i].Wall != c.Requested {
				t.Fatalf("job %d: %+v, was %+v; waiting %+v, was %+v", i, is, was, got.Waiting[i], s.Waiting[i])
			}
		}
	})
}

// The past of a log is what had happened by an instant: waits of what had started, run
// times of what had ended.
func TestThePastOfALogIsWhatHadHappened(t *testing.T) {
	l := &workload.Log{Comments: []string{" MaxProcs: 64"}}
	for i := range 100 {
		l.Jobs = append(l.Jobs, workload.Job{
			Number: int32(i + 1), Submit: int64(i * 100), Wait: 50, Run: 1000, Procs: 8, RequestedTime: 4000, Status: workload.StatusCompleted})
	}
	f := forecast.Past(l, 9000)
	if waits, runs := f.Waits(1).Len(), f.Runs(1).Len(); waits != 90 || runs != 80 {
		t.Fatalf("%d waits and %d run times are learnt, want 90 and 80", waits, runs)
	}
	if end := f.BusyUntil(forecast.Claim{Cores: 8, Start: 9000, Requested: 4000}, 9000, forecast.UsualView().Level); end != 10000 {
		t.Fatalf("busy until %d, want a quarter of the requested time, 10000", end)
	}
}

package forecast_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
)

// job is a line of a log with a wait.
func job(submit int64, wait, run int32, cores int32) workload.Job {
	return workload.Job{Submit: submit, Wait: wait, Run: run, Procs: cores, RequestedTime: run, Status: workload.StatusCompleted}
}

// naiveReplay looks, for each job, through all others for what has started.
func naiveReplay(l *workload.Log) (told, held int64) {
	cache := ranks{}
	for _, j := range l.Jobs {
		type seen struct{ start, wait int64 }
		var past []seen
		for _, k := range l.Jobs {
			if start := k.Submit + int64(k.Wait); start < j.Submit && forecast.Cluster(int(k.Procs)) == forecast.Cluster(int(j.Procs)) {
				past = append(past, seen{start, int64(k.Wait)})
			}
		}
		slices.SortStableFunc(past, func(a, b seen) int { return int(a.start - b.start) })
		o := naive{usual: cache}
		for _, p := range past {
			o.learn(p.wait)
		}
		if b, ok := o.bound(forecast.Usual()); ok {
			told++
			if int64(j.Wait) <= b {
				held++
			}
		}
	}
	return told, held
}

func TestReplayLearnsOnlyWhatHasStarted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	l := &workload.Log{}
	for i := range 260 {
		wait := r.Int32N(100)
		if i > 150 && i < 170 {
			wait *= 50
		}
		l.Jobs = append(l.Jobs, job(int64(i*7), wait, 10, 1+r.Int32N(8)))
	}
	got := forecast.Replay(l, forecast.Usual()).All()
	told, held := naiveReplay(l)
	if got.Told != told || got.Held != held || got.Told+got.Untold != 260 || held == told {
		t.Errorf("%+v, want told %d, held %d", got, told, held)
	}
}

func TestJobsOfOneSecondKnowNothingOfEachOther(t *testing.T) {
	l := &workload.Log{}
	for range 100 {
		l.Jobs = append(l.Jobs, job(5, 0, 10, 1))
	}
	l.Jobs = append(l.Jobs, job(6, 0, 10, 1))
	if got := forecast.Replay(l, forecast.Usual()).All(); got.Told != 1 || got.Held != 1 || got.Untold != 100 {
		t.Errorf("%+v", got)
	}
}

func TestJobsWithoutWaitAreCountedAndLeftOut(t *testing.T) {
	l := &workload.Log{Jobs: []workload.Job{job(1, -1, 10, 1), job(2, 3, 10, 1), job(3, 3, 0, 1), job(-1, 3, 10, 1), job(4, 3, 10, 0)}}
	if got := forecast.Replay(l, forecast.Usual()); got.Jobs != 1 || got.Unknown != 1 {
		t.Errorf("%+v", got)
	}
}

// synthetic is a log of some days with waits, whose jobs run a part of what they
// ask for.
func synthetic(t testing.TB, seed uint64, days int64, load float64) *workload.Log {
	t.Helper()
	l, err := workload.Synthesize(workload.Synthesis{
		Name: "test", Cores: 256, Duration: days * 86400, Load: load, Models: []workload.Model{workload.Typeless(), workload.Typeless()},
	}, rand.New(rand.NewPCG(seed, 2003)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Independent waits are what the method assumes: of them the share that holds is
// at least the quantile, at any level.
func TestBoundsOfIndependentWaitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		q := rapid.Float64Range(.6, .95).Draw(t, "quantile")
		l := &workload.Log{}
		for i := range 3000 {
			l.Jobs = append(l.Jobs, job(int64(i*1000), r.Int32N(900), 10, 1))
		}
		rate, _ := forecast.Replay(l, forecast.Level{Quantile: q, Confidence: .95}).All().Rate()
		if rate < q-.02 || rate > q+.1 {
			t.Fatalf("quantile %.3f: %.4f held", q, rate)
		}
	})
}

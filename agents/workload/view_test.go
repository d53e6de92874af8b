package workload_test

import (
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/workload"
)

func TestViewAgreesWithAnArray(t *testing.T) {
	const horizon, before = 400, 10 // the array begins some seconds before the log
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t, false)
		v, busy := workload.NewView(l), newArray(horizon, 0)
		for b := range l.Bursts() {
			busy.add(b.Start+before, b.End+before, b.Cores)
		}
		start, end := rapid.Int64Range(-before, horizon).Draw(t, "start"), rapid.Int64Range(-before, horizon).Draw(t, "end")
		most, work := busy.at(start+before), int64(0)
		for u := start + before; u < end+before; u++ {
			most, work = max(most, busy.at(u)), work+int64(busy.at(u))
		}
		if got := v.Busy(start); got != busy.at(start+before) {
			t.Fatalf("busy at %d: %d, want %d", start, got, busy.at(start+before))
		}
		if got := v.MostBusy(start, end); got != most {
			t.Fatalf("most busy in %d..%d: %d, want %d", start, end, got, most)
		}
		if got := v.Work(start, end); got != work {
			t.Fatalf("work in %d..%d: %d, want %d", start, end, got, work)
		}
	})
}

func TestFirstLoadedIsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := workload.NewView(drawLog(t, false))
		span, share := rapid.Int64Range(1, 60).Draw(t, "span"), rapid.Float64Range(0.05, 1.2).Draw(t, "share")
		got, ok := v.FirstLoaded(span, share)
		first, last := v.Span()
		for u := first; u <= last; u++ {
			if v.Load(u, u+span) >= share {
				if !ok || got != u {
					t.Fatalf("first loaded %d %v, want %d", got, ok, u)
				}
				return
			}
		}
		if ok {
			t.Fatalf("first loaded %d, want none", got)
		}
	})
}

func TestFirstLoadedSkipsAnIdleBeginning(t *testing.T) {
	l := mustRead(t, "; MaxProcs: 10\n1 0 0 10 1 0 0 1 10 0 1 0 0 0 0 0 0 0\n2 1000 0 100 8 0 0 8 100 0 1 0 0 0 0 0 0 0\n")
	if got, ok := workload.NewView(l).FirstLoaded(100, .6); !ok || got != 975 {
		t.Errorf("first loaded %d %v, want 975: from there 75 s of 100 have eight of ten cores busy", got, ok)
	}
	if _, ok := workload.NewView(&workload.Log{}).FirstLoaded(100, .6); ok {
		t.Error("an empty log is loaded")
	}
}

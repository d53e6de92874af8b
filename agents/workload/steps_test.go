package workload_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/workload"
)

// A profile made of another's steps answers the same, and can be changed.
func TestProfileOfSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := workload.NewProfile(0, 50)
		for range rapid.IntRange(0, 400).Draw(t, "slots") {
			start := rapid.Int64Range(0, 500).Draw(t, "start")
			p.Add(start, start+rapid.Int64Range(1, 50).Draw(t, "wall"), -rapid.IntRange(1, 5).Draw(t, "cores"))
		}
		q := workload.ProfileOf(slices.Collect(p.Steps(p.From(), workload.Forever)))
		p.Add(100, 300, 7)
		q.Add(100, 300, 7)
		for at := int64(-5); at < 600; at++ {
			if p.At(at) != q.At(at) || p.Free(at, at+37) != q.Free(at, at+37) {
				t.Fatalf("at %d: %d free, want %d", at, q.At(at), p.At(at))
			}
		}
		if !slices.Equal(slices.Collect(p.Steps(0, workload.Forever)), slices.Collect(q.Steps(0, workload.Forever))) {
			t.Fatal("the steps differ")
		}
	})
}

func TestProfileOfStepsAtOneInstant(t *testing.T) {
	p := workload.ProfileOf([]workload.Step{{At: 5, Free: 1}, {At: 5, Free: 2}, {At: 9, Free: 2}, {At: 12, Free: 0}})
	if p.Len() != 2 || p.At(5) != 2 || p.At(100) != 0 || p.From() != 5 {
		t.Fatalf("%d steps from %d", p.Len(), p.From())
	}
}

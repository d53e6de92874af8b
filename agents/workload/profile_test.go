package workload_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/workload"
)

// array is the naive profile: a number for every second of [0, len), the last
// one for ever after.
type array []int

func newArray(n, free int) array {
	a := make(array, n)
	for i := range a {
		a[i] = free
	}
	return a
}

func (a array) at(t int64) int { return a[min(max(t, 0), int64(len(a)-1))] }

func (a array) add(start, end int64, delta int) {
	for t := max(start, 0); t < min(end, int64(len(a))); t++ {
		a[t] += delta
	}
}

func (a array) free(start, end int64) int {
	least := a.at(start)
	for t := start; t < min(end, int64(len(a))); t++ {
		least = min(least, a.at(t))
	}
	return least
}

func (a array) earliest(from, until, wall int64, cores int) (int64, bool) {
	for t := from; t+wall <= until; t++ {
		if a.free(t, t+wall) >= cores {
			return t, true
		}
	}
	return 0, false
}

func TestProfileAgreesWithAnArray(t *testing.T) {
	const horizon = 60
	rapid.Check(t, func(t *rapid.T) {
		p, a := workload.NewProfile(0, 10), newArray(horizon, 10)
		instant := rapid.Int64Range(-5, horizon-1)
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			start, end, delta := instant.Draw(t, "start"), instant.Draw(t, "end"), rapid.IntRange(-4, 4).Draw(t, "delta")
			if rapid.IntRange(0, 9).Draw(t, "forever") == 0 {
				end = workload.Forever
			}
			p.Add(start, end, delta)
			a.add(start, end, delta)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		start, end := instant.Draw(t, "from"), instant.Draw(t, "to")
		if got, want := p.Free(start, end), a.free(start, end); got != want {
			t.Fatalf("free %d..%d: %d, want %d", start, end, got, want)
		}
		if got, want := p.At(start), a.at(start); got != want {
			t.Fatalf("at %d: %d, want %d", start, got, want)
		}
		checkEarliest(t, p, a, start, end)
		checkSteps(t, p, a, start, end)
	})
}

func checkEarliest(t *rapid.T, p *workload.Profile, a array, from, until int64) {
	wall, cores := rapid.Int64Range(1, 12).Draw(t, "wall"), rapid.IntRange(0, 14).Draw(t, "cores")
	got, ok := p.Earliest(from, until, wall, cores)
	want, wantOK := a.earliest(from, until, wall, cores)
	if ok != wantOK || got != want {
		t.Fatalf("earliest of %d cores for %d s in %d..%d: %d %v, want %d %v", cores, wall, from, until, got, ok, want, wantOK)
	}
}

func checkSteps(t *rapid.T, p *workload.Profile, a array, start, end int64) {
	next := start
	for s := range p.Steps(start, end) {
		if s.At < next || s.At == start && next != start {
			t.Fatalf("step %v begins before %d", s, next)
		}
		for ; next < s.At; next++ {
			if a.at(next) != a.at(max(next-1, start)) {
				t.Fatalf("no step at %d", next)
			}
		}
		if s.Free != a.at(s.At) {
			t.Fatalf("step %v, want %d free", s, a.at(s.At))
		}
		next = s.At + 1
	}
	for ; next < end; next++ {
		if a.at(next) != a.at(max(next-1, start)) {
			t.Fatalf("no step at %d", next)
		}
	}
}

// A profile of many blocks: what a small one cannot show.
func TestLargeProfileAgreesWithAnArray(t *testing.T) {
	const horizon = 20000
	r := rand.New(rand.NewPCG(3, 4))
	p, a := workload.NewProfile(0, 500), newArray(horizon, 500)
	type change struct {
		start, end int64
		delta      int
	}
	var undo []change
	for i := range 6000 {
		c := change{r.Int64N(horizon), r.Int64N(horizon), r.IntN(9) - 4}
		if i%3 == 2 { // take one back, so that steps vanish too
			c = undo[r.IntN(len(undo))]
			c.delta = -c.delta
		}
		undo = append(undo, c)
		p.Add(c.start, c.end, c.delta)
		a.add(c.start, c.end, c.delta)
		if i%10 != 0 {
			continue
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		// To the end of what was changed: queries that end where a step begins.
		from, to, cores := r.Int64N(horizon), undo[r.IntN(len(undo))].end, 440+r.IntN(80)
		if got, want := p.Free(from, to), a.free(from, to); got != want {
			t.Fatalf("free %d..%d: %d, want %d", from, to, got, want)
		}
		got, ok := p.Earliest(from, from+2000, 50, cores)
		if want, wantOK := a.earliest(from, from+2000, 50, cores); ok != wantOK || got != want {
			t.Fatalf("earliest of %d from %d: %d %v, want %d %v", cores, from, got, ok, want, wantOK)
		}
	}
	if p.Len() < 2000 {
		t.Fatalf("%d steps: the test is too small", p.Len())
	}
	forget(t, p, a, horizon/2)
}

func forget(t *testing.T, p *workload.Profile, a array, at int64) {
	whole := p.Clone()
	p.Forget(at)
	if err := p.Check(); err != nil || p.From() != at {
		t.Fatalf("from %d, want %d: %v", p.From(), at, err)
	}
	for u := at; u < int64(len(a)); u += 7 {
		if p.At(u) != a.at(u) {
			t.Fatalf("at %d: %d, want %d", u, p.At(u), a.at(u))
		}
	}
	if whole.At(0) != a.at(0) {
		t.Fatal("a copy changed with the original")
	}
}

// A slot that ends where a step begins does not see that step, in whichever block.
func TestFreeEndsBeforeTheNextStep(t *testing.T) {
	const steps = 3000
	p := workload.NewProfile(0, 0)
	for i := range int64(steps) {
		p.Add(i, workload.Forever, -1)
	}
	for end := int64(1); end < steps; end++ {
		if got := p.Free(0, end); got != -int(end) {
			t.Fatalf("free 0..%d: %d, want %d", end, got, -end)
		}
	}
}

func BenchmarkProfile(b *testing.B) {
	const horizon = 100_000_000
	r := rand.New(rand.NewPCG(5, 6))
	p := workload.NewProfile(0, 1<<20)
	for range 100_000 {
		start := r.Int64N(horizon)
		p.Add(start, start+r.Int64N(100_000), -1-r.IntN(100))
	}
	b.Run("Free", func(b *testing.B) {
		for b.Loop() {
			start := r.Int64N(horizon)
			p.Free(start, start+r.Int64N(horizon))
		}
	})
	b.Run("AddAndTakeBack", func(b *testing.B) {
		for b.Loop() {
			start := r.Int64N(horizon)
			end := start + r.Int64N(100_000)
			p.Add(start, end, -5)
			p.Add(start, end, 5)
		}
	})
	b.Run("Earliest", func(b *testing.B) {
		for b.Loop() {
			p.Earliest(r.Int64N(horizon), workload.Forever, 3600, 1<<20-4000)
		}
	})
}

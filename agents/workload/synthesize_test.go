package workload_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"

	"ramp/agents/workload"
)

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// kolmogorov is the largest distance between a sample's distribution and a cdf.
func kolmogorov(sample []float64, cdf func(float64) float64) float64 {
	slices.Sort(sample)
	worst, n := 0.0, float64(len(sample))
	for i, x := range sample {
		worst = max(worst, math.Abs(cdf(x)-float64(i)/n), math.Abs(cdf(x)-float64(i+1)/n))
	}
	return worst
}

// enough is a distance that a right sample of n exceeds once in a million seeds.
func enough(n int) float64 { return 2.7 / math.Sqrt(float64(n)) }

func TestGammaIsGonums(t *testing.T) {
	for _, c := range [][2]float64{{4.2, .94}, {312, .03}, {639.1, .0156}, {8.1737, 3.9631}, {10.46, .4871}, {1, 1}} {
		want := distuv.Gamma{Alpha: c[0], Beta: 1 / c[1]}
		// Only the day cycle asks for the cdf; its shapes are small.
		for x := -1.0; x < 90 && c[0] < 20; x += .37 {
			if got := workload.GammaCDF(x, c[0], c[1]); math.Abs(got-want.CDF(max(x, 0))) > 1e-12 {
				t.Fatalf("cdf of Gamma(%g, %g) at %g: %g, want %g", c[0], c[1], x, got, want.CDF(x))
			}
		}
		sample, r := make([]float64, 20000), chance(1)
		for i := range sample {
			sample[i] = workload.GammaDraw(r, c[0], c[1])
		}
		if d := kolmogorov(sample, want.CDF); d > enough(len(sample)) {
			t.Errorf("draws of Gamma(%g, %g) are off by %g", c[0], c[1], d)
		}
	}
}

func models() map[string]workload.Model {
	return map[string]workload.Model{"typeless": workload.Typeless(), "batch": workload.Batch(), "interactive": workload.Interactive()}
}

// Marginals on the published machine of 128 cores.
func TestSizesHaveThePublishedShares(t *testing.T) {
	const n = 40000
	for name, m := range models() {
		r, serial, pow2 := chance(2), 0, 0
		for range n {
			c := m.DrawCores(r, 128)
			if c < 1 || c > 128 {
				t.Fatalf("%s: %d cores of 128", name, c)
			}
			if c == 1 {
				serial++
			} else if c&(c-1) == 0 {
				pow2++
			}
		}
		// An unrounded size may be 1 or a power of two too: so at least, and not by much.
		within(t, name+" serial", float64(serial)/n, m.Serial, m.Serial+.03)
		within(t, name+" powers of two", float64(pow2)/n, m.Pow2-.01, m.Pow2+(1-m.Pow2-m.Serial)*.7)
	}
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low-.01 || got > high+.01 {
		t.Errorf("%s: %.4f, want %.4f..%.4f", what, got, low, high)
	}
}

// Sizes that are neither serial nor powers of two show the two-stage uniform.
func TestSizesAreTwoStageUniform(t *testing.T) {
	m := workload.Typeless()
	m.Serial, m.Pow2 = 0, 0
	for _, capacity := range []int{128, 9216, 163840} {
		r, sample := chance(3), make([]float64, 20000)
		high := math.Log2(float64(capacity))
		for i := range sample {
			// Half a core of jitter undoes the rounding, which small sizes would show.
			sample[i] = math.Log2(float64(m.DrawCores(r, capacity)) - .5 + r.Float64())
		}
		cdf := func(x float64) float64 {
			x = min(max(x, .8), high)
			if x <= high-2.5 {
				return .86 * (x - .8) / (high - 2.5 - .8)
			}
			return .86 + .14*(x-high+2.5)/2.5
		}
		if d := kolmogorov(sample, cdf); d > .05 {
			t.Errorf("%d cores: sizes are off by %g", capacity, d)
		}
	}
}

func TestRunTimesAreHyperGamma(t *testing.T) {
	for name, m := range models() {
		for _, cores := range []int{1, 32, 128, 4096} {
			p := min(max(m.PA*float64(cores)+m.PB, 0), 1)
			first, second := distuv.Gamma{Alpha: m.A1, Beta: 1 / m.B1}, distuv.Gamma{Alpha: m.A2, Beta: 1 / m.B2}
			whole := p*first.CDF(12) + (1-p)*second.CDF(12)
			cdf := func(x float64) float64 { return (p*first.CDF(x) + (1-p)*second.CDF(x)) / whole }
			r, sample := chance(4), make([]float64, 10000)
			for i := range sample {
				// A second of jitter undoes the floor.
				run := float64(m.DrawRun(r, cores))
				if math.Log(run) > 12 {
					t.Fatalf("%s: a run of %g s, more than e^12", name, run)
				}
				sample[i] = math.Log(run + r.Float64())
			}
			if d := kolmogorov(sample, cdf); d > enough(len(sample)) {
				t.Errorf("%s jobs of %d cores: run times are off by %g", name, cores, d)
			}
		}
	}
}

func TestGapsAreGamma(t *testing.T) {
	for name, m := range models() {
		want := distuv.Gamma{Alpha: m.AArr * m.ARAR, Beta: 1 / m.BArr}
		r, sample := chance(5), make([]float64, 10000)
		for i := range sample {
			sample[i] = math.Log(m.DrawGap(r))
		}
		cdf := func(x float64) float64 { return min(want.CDF(x)/want.CDF(13), 1) }
		if d := kolmogorov(sample, cdf); d > enough(len(sample)) {
			t.Errorf("%s: gaps are off by %g", name, d)
		}
	}
}

func TestDayCycle(t *testing.T) {
	for name, m := range models() {
		want := distuv.Gamma{Alpha: m.ANum, Beta: 1 / m.BNum}
		sum := 0.0
		for i, w := range m.Cycle() {
			hour := float64(i + 1) // the half-hour that index i stands for
			if hour < 11 {
				hour += 48
			}
			sum += w
			ratio := w / (want.CDF(hour+.5) - want.CDF(hour-.5))
			if all := 48 / (want.CDF(58.5) - want.CDF(10.5)); math.Abs(ratio/all-1) > 1e-9 {
				t.Errorf("%s: weight of half-hour %d is %g", name, i, w)
			}
		}
		if math.Abs(sum-48) > 1e-9 {
			t.Errorf("%s: weights sum to %g, want 48", name, sum)
		}
	}
}

func TestPointsArePaidHalfHourByHalfHour(t *testing.T) {
	m := workload.Typeless()
	const day = 86400
	if got := workload.Clock(m, 12345, 3*day); got != 3*day {
		t.Errorf("three days of points take %d s, want %d", got, 3*day)
	}
	w := m.Cycle()
	if got := workload.Clock(m, 1800, w[1]*1800+w[2]*450); got != 2250 {
		t.Errorf("one half-hour and a quarter of the next: %d s, want 2250", got)
	}
}

func synthesis() workload.Synthesis {
	return workload.Synthesis{
		Name: "test", Cores: 9216, Start: 40 * 86400, Duration: 4 * 86400, Load: .75,
		Models: []workload.Model{workload.Typeless()},
	}
}

func mustSynthesize(t testing.TB, s workload.Synthesis, seed uint64) *workload.Log {
	t.Helper()
	l, err := workload.Synthesize(s, chance(seed))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSynthesizeFillsTheMachine(t *testing.T) {
	for seed := range uint64(5) {
		for name, models := range map[string][]workload.Model{
			"one class": {workload.Typeless()}, "two classes": {workload.Batch(), workload.Interactive()},
		} {
			s := synthesis()
			s.Models = models
			l := mustSynthesize(t, s, seed)
			v := workload.NewView(l)
			work := float64(v.Work(0, workload.MaxTime)) / float64(s.Cores) / float64(s.Duration)
			if work < .75 || work > 1 {
				t.Errorf("%s, seed %d: jobs ask for %.3f of the machine, want .75 and at most one job more", name, seed, work)
			}
			if most := v.MostBusy(0, workload.MaxTime); most > s.Cores || l.Capacity() != s.Cores {
				t.Errorf("%s, seed %d: %d of %d cores busy", name, seed, most, l.Capacity())
			}
			first, last := l.Jobs[0].Submit, l.Jobs[len(l.Jobs)-1].Submit
			if first < s.Start || last > s.Start+s.Duration+43200 || last < s.Start+s.Duration*3/4 {
				t.Errorf("%s, seed %d: jobs arrive in %d..%d, want about %d..%d", name, seed, first, last, s.Start, s.Start+s.Duration)
			}
		}
	}
}

func TestSynthesizeAsPublished(t *testing.T) {
	s := synthesis()
	s.Load, s.Duration = 0, 30*86400
	l := mustSynthesize(t, s, 1)
	gap := 0.0
	for r := chance(6); gap == 0; {
		for range 20000 {
			gap += s.Models[0].DrawGap(r) / 20000
		}
	}
	within(t, "jobs of a month over those expected", float64(len(l.Jobs))*gap/float64(s.Duration), .85, 1.15)
}

func TestSynthesizeIsTheSameForTheSameSeed(t *testing.T) {
	a, b, c := mustSynthesize(t, synthesis(), 7), mustSynthesize(t, synthesis(), 7), mustSynthesize(t, synthesis(), 8)
	if !cmp.Equal(a, b) || cmp.Equal(a, c) {
		t.Error("want the same log for the same seed, another for another")
	}
	if !cmp.Equal(reread(t, a), a) {
		t.Error("the log is not read back as it was written")
	}
	for _, j := range a.Jobs {
		if j.RequestedTime < j.Run || j.Wait < 0 {
			t.Fatalf("job %d runs %d s of %d requested, waits %d", j.Number, j.Run, j.RequestedTime, j.Wait)
		}
	}
}

func TestSynthesisValidates(t *testing.T) {
	for name, change := range map[string]func(*workload.Synthesis){
		"no cores":               func(s *workload.Synthesis) { s.Cores = 0 },
		"a name of two lines":    func(s *workload.Synthesis) { s.Name = "a\n1 2 3" },
		"an endless name":        func(s *workload.Synthesis) { s.Name = string(make([]byte, 129)) },
		"no time":                func(s *workload.Synthesis) { s.Duration = 0 },
		"no model":               func(s *workload.Synthesis) { s.Models = nil },
		"a negative load":        func(s *workload.Synthesis) { s.Load = -1 },
		"no number":              func(s *workload.Synthesis) { s.Load = math.NaN() },
		"a start before the log": func(s *workload.Synthesis) { s.Start = -1 },
	} {
		s := synthesis()
		change(&s)
		if _, err := workload.Synthesize(s, chance(1)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

package workload_test

import (
	"math"
	"sync"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"

	"ramp/agents/workload"
)

// published is what the model of all jobs says of a machine of 128 cores, by the
// parameters of Lublin and Feitelson (2003, tables of the typeless model; specs
// §1.5), worked out from the densities without drawing anything.
type published struct {
	size [129]float64 // share of jobs of each size
}

const (
	pubSerial, pubPow2             = .244, .576
	pubLow, pubMed, pubHi, pubProb = .8, 4.5, 7., .86
)

// The parameters, column by column of the published table (specs §1.5): a slip
// of the pen in one may be too small for a sample to show.
func TestParametersAreThePublishedOnes(t *testing.T) {
	for i, row := range [][3]float64{ // batch, interactive, all
		{.2927, .1541, .244}, {.6686, .625, .576},
		{1.2, 1, .8}, {5, 3, 4.5}, {7, 5.5, 7}, {.875, .705, .86},
		{6.57, 3.8351, 4.2}, {.823, .6605, .94}, {639.1, 7.073, 312}, {.0156, .6856, .03},
		{-.003, -.0118, -.0054}, {.6986, .9156, .78},
		{6.0415, 6.551, 10.2303}, {.8531, .6621, .4871}, {6.1271, 8.9186, 8.1737}, {5.274, 3.668, 3.9631},
		{1.0519, .9797, 1.0225},
	} {
		for c, m := range []workload.Model{workload.Batch(), workload.Interactive(), workload.Typeless()} {
			got := []float64{
				m.Serial, m.Pow2, m.ULow, m.UMed, m.UHi, m.UProb, m.A1, m.B1, m.A2, m.B2,
				m.PA, m.PB, m.AArr, m.BArr, m.ANum, m.BNum, m.ARAR,
			}[i]
			if got != row[c] {
				t.Errorf("row %d, column %d: %g, want %g", i+1, c+1, got, row[c])
			}
		}
	}
}

func publishedMarginals() published {
	var p published
	p.size[1] += pubSerial
	two := func(x float64) float64 { // cdf of log2 of the size
		if x <= pubMed {
			return pubProb * max(x-pubLow, 0) / (pubMed - pubLow)
		}
		return pubProb + (1-pubProb)*min((x-pubMed)/(pubHi-pubMed), 1)
	}
	for k := 1; k <= 7; k++ { // rounded to whole powers
		p.size[1<<k] += pubPow2 * (two(float64(k)+.5) - two(float64(k)-.5))
	}
	for n := 2; n <= 128; n++ { // rounded to whole cores; 2^.8 is above 1.5
		p.size[n] += (1 - pubSerial - pubPow2) * (two(math.Log2(float64(n)+.5)) - two(math.Log2(float64(n)-.5)))
	}
	return p
}

// logRun is the cdf of the logarithm of the run time, over all sizes.
func (p published) logRun(x float64) float64 {
	short, long := distuv.Gamma{Alpha: 4.2, Beta: 1 / .94}, distuv.Gamma{Alpha: 312, Beta: 1 / .03}
	sum := 0.0
	for n, share := range p.size {
		first := min(max(-.0054*float64(n)+.78, 0), 1)
		whole := first*short.CDF(12) + (1-first)*long.CDF(12)
		sum += share * (first*short.CDF(x) + (1-first)*long.CDF(x)) / whole
	}
	return sum
}

// meanRun is the mean run time, ∫ (1 − F(log t)) dt.
func (p published) meanRun() float64 {
	return quad.Fixed(func(x float64) float64 { return math.Exp(x) * (1 - p.logRun(x)) }, -20, 12, 4000, nil, 0)
}

// quantile is where the cdf reaches q.
func quantile(cdf func(float64) float64, q, low, high float64) float64 {
	for range 60 {
		if mid := (low + high) / 2; cdf(mid) < q {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// publishedLog is a year of a machine of the published size at the published
// rate, with a fixed seed.
var publishedLog = sync.OnceValue(func() *workload.Log {
	s := workload.Synthesis{Name: "published", Cores: 128, Duration: publishedDays * 86400, Models: []workload.Model{workload.Typeless()}}
	l, err := workload.Synthesize(s, chance(2003))
	if err != nil || len(l.Jobs) < 20000 {
		panic("too few jobs to say anything")
	}
	return l
})

const publishedDays = 365

// The marginals of a whole synthetic log are the published ones. A share of n
// jobs may be off by four standard deviations, a mean by four of its errors, a
// median to where the cdf is off by four standard deviations.
func TestSyntheticLogHasThePublishedMarginals(t *testing.T) {
	l, p := publishedLog(), publishedMarginals()
	s, n := workload.Summarise(l), float64(len(l.Jobs))
	share := func(what string, got, want float64) {
		t.Helper()
		near(t, what, got, want, 4*math.Sqrt(want*(1-want)/n))
	}
	pow2, mean, square := 0.0, 0.0, 0.0
	for k := 2; k <= 128; k *= 2 {
		pow2 += p.size[k]
	}
	for k, x := range p.size {
		mean, square = mean+x*float64(k), square+x*float64(k*k)
	}
	share("serial jobs", s.Serial, p.size[1])
	share("powers of two", s.Pow2, pow2)
	near(t, "mean size", s.Size.Mean, mean, 4*math.Sqrt((square-mean*mean)/n))
	below, upTo := 0.0, 0.0
	for k, x := range p.size {
		if int64(k) < s.Size.Median {
			below += x
		}
		if int64(k) <= s.Size.Median {
			upTo += x
		}
	}
	if off := 2 / math.Sqrt(n); below > .5+off || upTo < .5-off {
		t.Errorf("median size %d: %.3f of jobs are smaller and %.3f no larger, want a half between", s.Size.Median, below, upTo)
	}
	share("runs up to the median", p.logRun(math.Log(float64(s.Run.Median)+.5)), .5)
	spread := 0.0
	for _, j := range l.Jobs {
		spread += (float64(j.Run) - s.Run.Mean) * (float64(j.Run) - s.Run.Mean)
	}
	// The run time is rounded down: half a second less on average, and never 0.
	near(t, "mean run time", s.Run.Mean, p.meanRun()-.5, 1+4*math.Sqrt(spread)/n)
	t.Logf("published: powers of two %.3f, size %.2f, run %.0f s", pow2, mean, p.meanRun())
	t.Logf("%d jobs: serial %.3f, powers of two %.3f, size %.1f (median %d), run %.0f s (median %d s; published %.0f s)", len(l.Jobs),
		s.Serial, s.Pow2, s.Size.Mean, s.Size.Median, s.Run.Mean, s.Run.Median, math.Exp(quantile(p.logRun, .5, 0, 12)))
}

func near(t *testing.T, what string, got, want, off float64) {
	t.Helper()
	if math.Abs(got-want) > off {
		t.Errorf("%s: %.4f, want %.4f ± %.4f", what, got, want, off)
	}
}

// Jobs arrive by the published day cycle: few before dawn, most in the early
// afternoon. They come in clusters, so that a half-hour's count is not that of
// independent jobs: the error is taken from the days themselves.
func TestSyntheticLogHasThePublishedDay(t *testing.T) {
	l := publishedLog()
	cycle := distuv.Gamma{Alpha: 8.1737, Beta: 1 / 3.9631}
	whole := cycle.CDF(58.5) - cycle.CDF(10.5)
	const parts, hours = 8, 3 // of the day
	var want, got [parts]float64
	days := make([][parts]float64, publishedDays)
	for i := 11; i <= 58; i++ { // the day that the cycle is fitted to begins at 5:00
		want[(i-1)%48/6] += (cycle.CDF(float64(i)+.5) - cycle.CDF(float64(i)-.5)) / whole
	}
	n := 0.0
	for _, j := range l.Jobs {
		day, part := j.Submit/86400, j.Submit%86400/(hours*3600)
		days[day][part]++
		got[part]++
		n++
	}
	for part := range parts {
		variance := 0.0
		for _, d := range days {
			x := d[part] - got[part]/float64(len(days))
			variance += x * x
		}
		off := 4 * math.Sqrt(variance) / n
		t.Logf("%2d:00 to %2d:00: %.3f of jobs, published %.3f ± %.3f", part*hours, (part+1)*hours, got[part]/n, want[part], off)
		near(t, "share of the hours", got[part]/n, want[part], off)
	}
	if busiest := got[4]; busiest < 3*got[1] {
		t.Errorf("%.0f jobs from 12 to 15 and %.0f from 3 to 6: no day is to be seen", busiest, got[1])
	}
}

package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// Model is the workload model of Lublin and Feitelson (JPDC 63, 2003) for one class of jobs: how
// many cores, how long, and when. The sizes are base-2 logarithms for a machine of 128 cores;
// Synthesize shifts UMed and UHi with the size of the machine, so that for the typeless class UHi =
// log2(size) and UMed = UHi − 2.5.
type Model struct {
	Serial, Pow2           float64 // shares of one-core and of power-of-two jobs
	ULow, UMed, UHi, UProb float64 // two-stage uniform size
	A1, B1, A2, B2         float64 // hyper-Gamma logarithm of the run time
	PA, PB                 float64 // share of the first Gamma: PA × cores + PB
	AArr, BArr, ANum, BNum float64 // Gamma logarithm of the gap; Gamma day cycle
	ARAR                   float64 // from rush hour to all hours, on AArr
}

// Typeless is the model of all jobs together, with its published parameters.
func Typeless() Model {
	return Model{
		Serial: .244, Pow2: .576, ULow: .8, UMed: 4.5, UHi: 7, UProb: .86,
		A1: 4.2, B1: .94, A2: 312, B2: .03, PA: -.0054, PB: .78,
		AArr: 10.2303, BArr: .4871, ANum: 8.1737, BNum: 3.9631, ARAR: 1.0225,
	}
}

// Batch is the model of batch jobs, with its published parameters.
func Batch() Model {
	return Model{
		Serial: .2927, Pow2: .6686, ULow: 1.2, UMed: 5, UHi: 7, UProb: .875,
		A1: 6.57, B1: .823, A2: 639.1, B2: .0156, PA: -.003, PB: .6986,
		AArr: 6.0415, BArr: .8531, ANum: 6.1271, BNum: 5.274, ARAR: 1.0519,
	}
}

// Interactive is the model of interactive jobs, with its published parameters.
func Interactive() Model {
	return Model{
		Serial: .1541, Pow2: .625, ULow: 1, UMed: 3, UHi: 5.5, UProb: .705,
		A1: 3.8351, B1: .6605, A2: 7.073, B2: .6856, PA: -.0118, PB: .9156,
		AArr: 6.551, BArr: .6621, ANum: 8.9186, BNum: 3.668, ARAR: .9797,
	}
}

// publishedSize is the base-2 logarithm of the machine for the published sizes.
const publishedSize = 7

// on adapts the model to a machine of another size.
func (m Model) on(capacity int) Model {
	shift := math.Log2(float64(capacity)) - publishedSize
	m.UMed, m.UHi = max(m.UMed+shift, m.ULow), max(m.UHi+shift, m.ULow)
	return m
}

// cores draws the size of a job, at most the capacity.
func (m Model) cores(r *rand.Rand, capacity int) int {
	u := r.Float64()
	if u <= m.Serial {
		return 1
	}
	low, high := m.ULow, m.UMed
	if r.Float64() > m.UProb {
		low, high = m.UMed, m.UHi
	}
	x := low + (high-low)*r.Float64()
	if u <= m.Serial+m.Pow2 {
		x = math.Round(x)
	}
	return min(int(math.Round(math.Exp2(x))), capacity)
}

// maxLogRun and maxLogGap are the logarithms above which the model redraws a
// run time (about 45 hours) and a gap (about 5 days).
const (
	maxLogRun = 12
	maxLogGap = 13
)

// run draws the run time of a job in seconds, at least 1.
func (m Model) run(r *rand.Rand, cores int) int32 {
	first := min(max(m.PA*float64(cores)+m.PB, 0), 1)
	for {
		// A redraw chooses the Gamma again, as the authors' program does.
		g := gamma{m.A2, m.B2}
		if r.Float64() <= first {
			g = gamma{m.A1, m.B1}
		}
		if h := g.draw(r); h <= maxLogRun {
			return int32(math.Exp(h))
		}
	}
}

// gap draws the points between two arrivals: seconds if all hours were alike.
func (m Model) gap(r *rand.Rand) float64 {
	for {
		if g := (gamma{m.AArr * m.ARAR, m.BArr}).draw(r); g <= maxLogGap {
			return math.Exp(g)
		}
	}
}

// The day has 48 half-hours; the fitted day cycle begins with half-hour dayStart.
const (
	buckets  = 48
	bucket   = 1800 // seconds
	dayStart = 11
)

// cycle is the number of points per second in each half-hour of the day, with mean 1:
// more when many jobs arrive.
func (m Model) cycle() [buckets]float64 {
	var weight [buckets]float64
	g := gamma{m.ANum, m.BNum}
	sum := 0.0
	for i := dayStart; i < dayStart+buckets; i++ {
		w := g.cdf(float64(i)+.5) - g.cdf(float64(i)-.5)
		weight[(i-1)%buckets] = w
		sum += w
	}
	for i := range weight {
		weight[i] *= buckets / sum
	}
	return weight
}

// gamma is a Gamma distribution by shape and scale; its mean is shape × scale.
type gamma struct{ shape, scale float64 }

// draw draws a random value by Marsaglia and Tsang's method (2000): it accepts a cubed, shifted
// normal value with the ratio of the densities. The shape must be at least 1; all shapes of the
// model are above 3. The method is written out here because gonum's distuv.Gamma draws other values
// from the same source, and would change the published synthetic logs.
func (g gamma) draw(r *rand.Rand) float64 {
	d := g.shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v * g.scale
		}
	}
}

func (g gamma) cdf(x float64) float64 { return mathext.GammaIncReg(g.shape, max(x, 0)/g.scale) }

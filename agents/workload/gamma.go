package workload

import (
	"math"
	"math/rand/v2"
)

// gamma is a Gamma distribution by shape and scale (mean shape × scale).
type gamma struct{ shape, scale float64 }

// draw is a random value, by Marsaglia and Tsang's method (2000): a cubed,
// shifted normal value, accepted with the ratio of the densities. It holds for
// shapes of at least 1; all shapes of the model are above 3.
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

// cdf is the probability of a value of at most x: the regularised lower
// incomplete gamma function of x/scale, by its power series. It serves the day
// cycle, whose shapes and arguments are below 100: there every term is positive
// and none underflows, so the sum is accurate.
func (g gamma) cdf(x float64) float64 {
	x /= g.scale
	if x <= 0 {
		return 0
	}
	log, _ := math.Lgamma(g.shape + 1)
	term := math.Exp(g.shape*math.Log(x) - x - log)
	sum := term
	for k := 1; k < maxTerms && term > sum*1e-16; k++ {
		term *= x / (g.shape + float64(k))
		sum += term
	}
	return min(sum, 1)
}

// maxTerms bounds the power series.
const maxTerms = 10000

package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

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

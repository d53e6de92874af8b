package forecast

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Level is a quantile, and the confidence of its bound.
type Level struct {
	Quantile   float64 // share of waits within the bound, 0 < q < 1
	Confidence float64 // probability that the bound covers that share, 0 < c < 1
}

// Usual is the level of QBETS: the 0.95 quantile with confidence 0.95.
func Usual() Level { return Level{Quantile: .95, Confidence: .95} }

// Validate names the wrong field and the allowed values.
func (l Level) Validate() error {
	switch {
	case !open(l.Quantile):
		return fmt.Errorf("forecast: quantile %g, want 0.000001 to 0.999999", l.Quantile)
	case !open(l.Confidence):
		return fmt.Errorf("forecast: confidence %g, want 0.000001 to 0.999999", l.Confidence)
	}
	return nil
}

func open(x float64) bool { return x >= MinLevel && x <= 1-MinLevel }

// MinLevel is the least quantile and confidence; one minus it is the largest.
const MinLevel = 1e-6

// MaxExact is the largest history with exact ranks. Larger ones use the normal
// distribution; its ranks differ from the exact ones by at most one for quantiles of 0.5
// to 0.99, and by at most two for those down to 0.01, at confidences of 0.01 to 0.99.
const MaxExact = 1000

// nearly is the tolerance for rounding errors of a probability.
const nearly = 1e-12

// Rank is the least k such that the k-th smallest of n independent observations
// is, with the confidence, not below the quantile of their distribution:
//
//	Σ_{j<k} C(n,j) q^j (1−q)^{n−j} ≥ confidence
//
// It is false if no k fits because n is too small, for the usual level below 59.
func (l Level) Rank(n int) (int, bool) {
	if n < 1 {
		return 0, false
	}
	k := l.normalRank(n)
	if n <= MaxExact {
		k = l.exactRank(n, k)
	}
	return k, k <= n
}

// normalRank is ⌈nq + z√(nq(1−q))⌉, at least 1.
func (l Level) normalRank(n int) int {
	mean, variance := float64(n)*l.Quantile, float64(n)*l.Quantile*(1-l.Quantile)
	return max(1, int(math.Ceil(mean+l.z()*math.Sqrt(variance))))
}

func (l Level) z() float64 { return mathext.NormalQuantile(l.Confidence) }

// exactRank steps from a guess to the exact rank, or to n+1 if no rank fits.
func (l Level) exactRank(n, guess int) int {
	k := min(max(guess, 1), n)
	short := 1 - l.Confidence + nearly
	for k <= n && atLeast(n, k, l.Quantile) > short {
		k++
	}
	for k > 1 && atLeast(n, k-1, l.Quantile) <= short {
		k--
	}
	return k
}

// atLeast is the probability of k or more of n, 1 <= k <= n, each having probability q.
func atLeast(n, k int, q float64) float64 { return mathext.RegIncBeta(float64(k), float64(n-k+1), q) }

// Covered is the inverse of Rank: the largest quantile whose bound at this confidence
// is at most the k-th smallest of n observations. It is 0 for k = 0.
func Covered(n, k int, confidence float64) float64 {
	if k <= 0 || n < 1 {
		return 0
	}
	k = min(k, n)
	if n <= MaxExact {
		return mathext.InvRegIncBeta(float64(k), float64(n-k+1), 1-confidence)
	}
	return min(max(wilson(n, k, confidence), 0), 1)
}

// wilson solves nq + z√(nq(1−q)) = k for the valid q.
func wilson(n, k int, confidence float64) float64 {
	z := Level{Confidence: confidence}.z()
	m, all := float64(k), float64(n)
	return (m + z*z/2 - z*math.Sqrt(z*z/4+m*(1-m/all))) / (all + z*z)
}

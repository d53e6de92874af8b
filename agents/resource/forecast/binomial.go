package forecast

import (
	"fmt"
	"math"
)

// Level says which quantile is bounded, and how sure the bound is to hold.
type Level struct {
	Quantile   float64 // share of waits that the bound is to cover, 0 < q < 1
	Confidence float64 // probability that it covers them, 0 < c < 1
}

// Usual is the level of QBETS: the 0.95 quantile with confidence 0.95.
func Usual() Level { return Level{Quantile: .95, Confidence: .95} }

// Validate names the field that is wrong, and what is allowed.
func (l Level) Validate() error {
	switch {
	case !open(l.Quantile):
		return fmt.Errorf("forecast: quantile %g, want between 0 and 1", l.Quantile)
	case !open(l.Confidence):
		return fmt.Errorf("forecast: confidence %g, want between 0 and 1", l.Confidence)
	}
	return nil
}

// open reports whether x is between MinLevel and its complement.
func open(x float64) bool { return x >= MinLevel && x <= 1-MinLevel }

// MinLevel is the least quantile and confidence; one minus it is the largest.
const MinLevel = 1e-6

// MaxExact is the largest history of which ranks are exact. Larger ones use the
// normal distribution; its ranks differ from the exact ones by at most one for
// quantiles of 0.5 to 0.99, and by at most two for those down to 0.01, at
// confidences of 0.01 to 0.99.
const MaxExact = 1000

// nearly is how far a sum of probabilities may fall short of the confidence: the
// error of adding them.
const nearly = 1e-12

// Rank is the least k such that the k-th smallest of n independent observations
// is, with the confidence, not below the quantile of what they come from:
//
//	Σ_{j<k} C(n,j) q^j (1−q)^{n−j} ≥ confidence
//
// It is false if n is too small for any, as for the usual level below 59.
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

// z is the quantile of the normal distribution at the confidence.
func (l Level) z() float64 { return math.Sqrt2 * math.Erfinv(2*l.Confidence-1) }

// exactRank steps from a guess to the exact rank; n+1 says that there is none.
func (l Level) exactRank(n, guess int) int {
	k := min(max(guess, 1), n)
	short := 1 - l.Confidence + nearly
	tail := atLeast(n, k, l.Quantile)
	if tail > short {
		for k <= n && tail > short {
			tail -= pmf(n, k, l.Quantile)
			k++
		}
		return k
	}
	for k > 1 {
		if tail += pmf(n, k-1, l.Quantile); tail > short {
			break
		}
		k--
	}
	return k
}

// atLeast is the probability of k or more of n, each having probability q.
func atLeast(n, k int, q float64) float64 {
	if k <= 0 {
		return 1
	}
	if float64(k) < float64(n)*q { // the other tail has fewer terms
		return 1 - away(n, k-1, q, -1)
	}
	return away(n, k, q, +1)
}

// away sums the probabilities of exactly j of n, from j = k away from the mean
// until they no longer count.
func away(n, k int, q float64, step int) float64 {
	if k < 0 || k > n {
		return 0
	}
	term := pmf(n, k, q)
	sum, odds := term, q/(1-q)
	for j := k; term > sum*1e-17; {
		if step > 0 {
			term *= float64(n-j) / float64(j+1) * odds
		} else {
			term *= float64(j) / float64(n-j+1) / odds
		}
		sum += term
		j += step
	}
	return sum
}

// pmf is the probability of exactly k of n.
func pmf(n, k int, q float64) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	in, _ := math.Lgamma(float64(k + 1))
	out, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - in - out + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
}

// Covered is the largest quantile whose bound at this confidence is the k-th
// smallest of n observations or a smaller one: the inverse of Rank. It is 0 for
// k = 0.
func Covered(n, k int, confidence float64) float64 {
	if k <= 0 || n < 1 {
		return 0
	}
	q := wilson(n, min(k, n), confidence)
	if n <= MaxExact {
		q = exactCovered(n, min(k, n), confidence, q)
	}
	return min(max(q, 0), 1)
}

// wilson solves nq + z√(nq(1−q)) = k for the q that is meant.
func wilson(n, k int, confidence float64) float64 {
	z := Level{Confidence: confidence}.z()
	m, all := float64(k), float64(n)
	return (m + z*z/2 - z*math.Sqrt(z*z/4+m*(1-m/all))) / (all + z*z)
}

// coveredSteps bounds the halvings of exactCovered; a double has 53 bits.
const coveredSteps = 60

// exactCovered solves P(k or more of n) = 1−confidence for q: Newton's method,
// and a halving where that leaves the interval known to hold the solution.
func exactCovered(n, k int, confidence, q float64) float64 {
	low, high, want := 0.0, 1.0, 1-confidence
	for range coveredSteps {
		if q <= low || q >= high {
			q = (low + high) / 2
		}
		over := atLeast(n, k, q) - want
		if over > 0 {
			high = q
		} else {
			low = q
		}
		slope := float64(k) * pmf(n, k, q) / q
		next := q - over/slope
		if math.Abs(next-q) < 1e-13 || high-low < 1e-13 {
			return next
		}
		q = next
	}
	return low
}

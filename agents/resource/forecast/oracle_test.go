package forecast_test

import (
	"math"
	"math/big"
	"slices"

	"ramp/agents/resource/forecast"
)

// prec is the precision, in bits, of the oracle's sums.
const prec = 160

// below is Σ_{j<k} C(n,j) q^j (1−q)^{n−j} for each k from 0 to n+1, with exact
// binomial coefficients and powers of the very doubles that are asked for.
func below(n int, q float64) []*big.Float {
	one := new(big.Float).SetPrec(prec).SetInt64(1)
	in := new(big.Float).SetPrec(prec).SetFloat64(q)
	out := new(big.Float).SetPrec(prec).Sub(one, in)
	ins, outs := powers(in, n), powers(out, n)
	sums := []*big.Float{new(big.Float).SetPrec(prec)}
	ways := big.NewInt(1) // C(n, j)
	for j := 0; j <= n; j++ {
		term := new(big.Float).SetPrec(prec).SetInt(ways)
		ways.Mul(ways, big.NewInt(int64(n-j)))
		ways.Quo(ways, big.NewInt(int64(j+1)))
		term.Mul(term, ins[j]).Mul(term, outs[n-j])
		sums = append(sums, term.Add(term, sums[j]))
	}
	return sums
}

func powers(x *big.Float, n int) []*big.Float {
	list := []*big.Float{new(big.Float).SetPrec(prec).SetInt64(1)}
	for i := range n {
		list = append(list, new(big.Float).SetPrec(prec).Mul(list[i], x))
	}
	return list
}

// rank is the least k with below(k) ≥ c; n+1 if there is none.
func rank(sums []*big.Float, c float64) int {
	want := new(big.Float).SetPrec(prec).SetFloat64(c)
	n := len(sums) - 2
	for k := 1; k <= n; k++ {
		if sums[k].Cmp(want) >= 0 {
			return k
		}
	}
	return n + 1
}

// near reports whether a sum is so close to c that doubles cannot tell.
func near(sums []*big.Float, c float64) bool {
	return slices.ContainsFunc(sums, func(s *big.Float) bool {
		x, _ := s.Float64()
		return math.Abs(x-c) < 1e-11
	})
}

// ranks are those of the usual level, by the length of the list.
type ranks map[int]int

// naive is a history kept in the plainest way: a list, sorted when asked.
type naive struct {
	list     []int64
	missed   int
	usual    ranks
	doubtful bool // the last correlation is so near a row of the table that rounding decides
}

func (n *naive) sorted() []int64 { return slices.Sorted(slices.Values(n.list)) }

func (n *naive) bound(l forecast.Level) (int64, bool) {
	k := rank(below(len(n.list), l.Quantile), l.Confidence)
	if k > len(n.list) {
		return 0, false
	}
	return n.sorted()[k-1], true
}

func (n *naive) learn(x int64) {
	if n.usual[len(n.list)] == 0 {
		n.usual[len(n.list)] = rank(below(len(n.list), .95), .95)
	}
	if k := n.usual[len(n.list)]; k <= len(n.list) {
		n.missed++
		if x <= n.sorted()[k-1] {
			n.missed = 0
		}
	}
	n.list = append(n.list, x)
	r := n.correlation()
	n.doubtful = naivePatience(r-rounding) != naivePatience(r+rounding)
	if n.missed >= naivePatience(r) {
		n.list = slices.Clone(n.list[len(n.list)-59:])
		n.missed = 0
	}
}

// rounding is more than what logarithms in units of 1/1024 change of a correlation.
const rounding = 2e-3

// correlation is by the textbook, of log(1+x) as it is.
func (n *naive) correlation() float64 {
	if len(n.list) < 2 {
		return 0
	}
	mean, variance, shared := 0.0, 0.0, 0.0
	y := make([]float64, len(n.list))
	for i, x := range n.list {
		y[i] = math.Log(1 + float64(x))
		mean += y[i] / float64(len(y))
	}
	for i := range y {
		variance += (y[i] - mean) * (y[i] - mean)
		if i > 0 {
			shared += (y[i] - mean) * (y[i-1] - mean)
		}
	}
	if variance < 1e-9 {
		return 0
	}
	return shared / variance
}

func naivePatience(r float64) int {
	table := map[float64]int{.1: 4, .2: 4, .3: 5, .4: 5, .5: 6, .6: 7, .7: 9, .8: 12, .9: 23, .95: 42}
	best, run := 0.0, 3
	for from, misses := range table {
		if r >= from && from > best {
			best, run = from, misses
		}
	}
	return run
}

// Package decay computes balances that grow by an income and decay at a rate, dx/dt
// = a − b·x (001 "Monetary Policy"), exactly enough that every reader of the same
// entries gets the same micro-credit (docs/decisions/0017).
package decay

import (
	"math/big"
	"time"

	"ramp/protocol"
)

// Day is the unit of time of incomes and rates.
const Day = 24 * time.Hour

// Million is the unit of rates: parts per million per Day.
const Million = 1_000_000

// Figures of the exponential. The argument is at most 129; halved halvings times
// it is below 2^-8, so that what the series leaves out is below 2^-250. Halving
// and squaring lose 25 of the places worked with, and 128 are kept.
const (
	weightBits  = 128
	workBits    = 256
	halvings    = 16
	taylorTerms = 22
	residueBits = 64
)

// decayed is e^(−ppm/10⁶ · elapsed/Day), rounded down to 2^-128 from a value that
// is right to 2^-220. So a longer time never gives more.
func decayed(ppm int64, elapsed time.Duration) *big.Int {
	p := new(big.Int).Mul(big.NewInt(ppm), big.NewInt(int64(elapsed)))
	q := new(big.Int).Mul(big.NewInt(Million), big.NewInt(int64(Day)))
	if new(big.Int).Quo(p, q).Cmp(big.NewInt(weightBits)) > 0 {
		return new(big.Int) // e^-128 is far below 2^-128
	}
	y := p.Lsh(p, workBits-halvings)
	sum, spare := series(y.Quo(y, q)), new(big.Int)
	for range halvings {
		sum.Rsh(spare.Mul(sum, sum), workBits)
	}
	return sum.Rsh(sum, workBits-weightBits)
}

// series is Taylor's for e^-y; both have workBits binary places.
func series(y *big.Int) *big.Int {
	sum := new(big.Int).Lsh(big.NewInt(1), workBits)
	term, spare, divisor := new(big.Int).Set(sum), new(big.Int), new(big.Int)
	for i := int64(1); i <= taylorTerms; i++ {
		term.Rsh(spare.Mul(term, y), workBits)
		term.Quo(term, divisor.SetInt64(i))
		if i%2 == 1 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
	return sum
}

// Grow is an account's balance, in micro-credits and 2⁻⁶⁴ parts of one, after a time in which
// nothing else touched it: x·w + (a/b)(1 − w) with w = e^(−b·elapsed), rounded down. Balance and
// residue are x; income is a, per Day; ppm is b, more than zero.
func Grow(balance protocol.Credits, residue uint64, income protocol.Credits, ppm int64, elapsed time.Duration) (protocol.Credits, uint64) {
	x := new(big.Int).Lsh(big.NewInt(int64(balance)), residueBits)
	x.Add(x, new(big.Int).SetUint64(residue))
	w := decayed(ppm, elapsed)
	x.Mul(x, w).Mul(x, big.NewInt(ppm))
	rest := new(big.Int).Lsh(big.NewInt(1), weightBits)
	rest.Sub(rest, w).Mul(rest, big.NewInt(int64(income))).Mul(rest, big.NewInt(Million))
	x.Add(x, rest.Lsh(rest, residueBits))
	x.Div(x, new(big.Int).Lsh(big.NewInt(ppm), weightBits)) // towards −∞, for a positive divisor
	low := new(big.Int).And(x, new(big.Int).SetUint64(1<<residueBits-1))
	return protocol.Credits(x.Rsh(x, residueBits).Int64()), low.Uint64()
}

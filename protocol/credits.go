package protocol

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Credits is an amount of money in micro-credits (10⁻⁶ of a credit). Amounts are never floats.
type Credits int64

// Credit is one credit; CreditDigits is the number of its decimal places.
const (
	Credit       Credits = 1_000_000
	CreditDigits         = 6
	MaxCredits   Credits = math.MaxInt64
)

// ErrOverflow is returned when an amount does not fit in 63 bits.
var ErrOverflow = errors.New("too large: amounts and balances are at most 9223372036854.775807 credits")

// ParseCredits reads a decimal number of credits with at most six decimal
// places, such as "12", "-3.5" or "0.000001".
func ParseCredits(s string) (Credits, error) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, frac, dotted := strings.Cut(digits, ".")
	if whole == "" || dotted && frac == "" || !decimal(whole) || !decimal(frac) {
		return 0, fmt.Errorf("amount %q: want a decimal number such as 12.5", Clip(s))
	}
	if len(frac) > CreditDigits {
		return 0, fmt.Errorf("amount %q: at most %d decimal places", Clip(s), CreditDigits)
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", CreditDigits-len(frac)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", Clip(s), ErrOverflow)
	}
	if negative {
		n = -n
	}
	return Credits(n), nil
}

func decimal(s string) bool { return strings.Trim(s, "0123456789") == "" }

// String prints the shortest exact decimal form: "12", "-3.5", "0.000001".
func (c Credits) String() string { return string(c.Append(nil)) }

// Append appends what String prints.
func (c Credits) Append(out []byte) []byte {
	n := uint64(c)
	if c < 0 {
		out, n = append(out, '-'), -n
	}
	out = strconv.AppendUint(out, n/uint64(Credit), 10)
	frac := n % uint64(Credit)
	if frac == 0 {
		return out
	}
	out = append(out, '.')
	for unit := uint64(Credit) / 10; frac > 0; unit /= 10 {
		out = append(out, '0'+byte(frac/unit))
		frac %= unit
	}
	return out
}

// Cents prints an amount for people with two decimal places. What would read as nothing, below
// half a cent, is exact.
func (c Credits) Cents() string {
	const cent = uint64(Credit) / 100
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	if n > 0 && n < cent/2 {
		return c.String()
	}
	n = n/cent + (n%cent+cent/2)/cent
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// MarshalJSON writes the exact decimal number of credits.
func (c Credits) MarshalJSON() ([]byte, error) { return c.Append(nil), nil }

// UnmarshalJSON reads a decimal number of credits, bare or quoted, also one such as 5e-05.
func (c *Credits) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if digits, exponent, found := strings.Cut(strings.ToLower(text), "e"); found {
		n, err := strconv.Atoi(exponent)
		if err == nil && strings.Trim(digits, "-.0123456789") == "" && len(digits) <= 32 && max(n, -n) <= 32 {
			if r, ok := new(big.Rat).SetString(text); ok {
				text = strings.TrimSuffix(strings.TrimRight(r.FloatString(64), "0"), ".")
			}
		}
	}
	v, err := ParseCredits(text)
	if err != nil {
		return err
	}
	*c = v
	return nil
}

// Add returns c+d, or ErrOverflow.
func (c Credits) Add(d Credits) (Credits, error) {
	s := c + d
	if (c > 0 && d > 0 && s < 0) || (c < 0 && d < 0 && s >= 0) {
		return 0, ErrOverflow
	}
	return s, nil
}

// Cost is the cost of cores for a wall time at a price per core-hour, rounded half away from zero
// to a micro-credit. Price, cores and wall time must not be negative.
func Cost(price Credits, cores int, wall time.Duration) (Credits, error) {
	if price < 0 || cores < 0 || wall < 0 {
		return 0, fmt.Errorf("cost of %d cores for %s at %s: nothing may be negative", cores, wall, price)
	}
	// cores × wall × price may take 160 bits. The dividend must fit in 128, with its
	// upper half below the divisor, or the quotient does not fit in 64.
	hi, lo := bits.Mul64(uint64(cores), uint64(wall))
	top, mid := bits.Mul64(hi, uint64(price))
	carried, low := bits.Mul64(lo, uint64(price))
	mid, carry := bits.Add64(mid, carried, 0)
	if top+carry != 0 || mid >= uint64(time.Hour) {
		return 0, ErrOverflow
	}
	low, carry = bits.Add64(low, uint64(time.Hour)/2, 0)
	if mid += carry; mid >= uint64(time.Hour) {
		return 0, ErrOverflow
	}
	q, _ := bits.Div64(mid, low, uint64(time.Hour))
	if q > uint64(MaxCredits) {
		return 0, ErrOverflow
	}
	return Credits(q), nil
}

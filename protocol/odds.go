package protocol

import (
	"fmt"
	"math"
	"strconv"
)

// Odds is a probability in millionths, plus one; zero: unknown. It is a seller's
// estimate, not a promise.
type Odds uint32

// MaxOdds is certainty.
const MaxOdds Odds = oddsUnit + 1

const oddsUnit = 1_000_000

// OddsOf is a probability, rounded down to a millionth and clamped to 0..1.
func OddsOf(p float64) Odds {
	if !(p > 0) {
		return 1
	}
	return 1 + Odds(math.Min(p, 1)*oddsUnit)
}

// Chance is the probability, 0..1; false if it is unknown.
func (o Odds) Chance() (float64, bool) {
	if o == 0 || o > MaxOdds {
		return 0, false
	}
	return float64(o-1) / oddsUnit, true
}

// String is for people: whole per cents, rounded down.
func (o Odds) String() string {
	if o == 0 || o > MaxOdds {
		return "-"
	}
	return strconv.FormatUint(uint64(o-1)/(oddsUnit/100), 10) + " %"
}

// MarshalJSON writes the probability, or null.
func (o Odds) MarshalJSON() ([]byte, error) {
	p, ok := o.Chance()
	if !ok {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, p, 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Odds) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = 0
		return nil
	}
	p, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("odds %.32s: want 0..1", b)
	}
	*o = 1 + Odds(math.Round(p*oddsUnit))
	return nil
}

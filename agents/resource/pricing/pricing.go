// Package pricing is the price rule of a seller (002 §6.2.3): how far it goes
// below the price that stands in a request, given how busy its machine is.
//
//	d = (s − m)(1 − l)/n        o = max(r − d, m)
//
// with s the start price, m the minimum, l the share of the machine that is
// allocated at the first instant of the offered slot without the job itself, n
// the rounds that the seller expects, and r the price standing in the request.
// A seller whose minimum is above r does not bid. The source lost the formula;
// the terms and their reading are those of its text, and n = 4 is what its
// authors' program divides by.
//
// Everything is an integer: the load is a pair of counts, and the decrement is
// rounded once, half away from zero, to a micro-credit.
package pricing

import (
	"fmt"
	"math/bits"

	"ramp/protocol"
)

// DefaultRounds is n: in how many rounds a seller expects to come down from its
// start price to its minimum on an idle machine.
const DefaultRounds = 4

// MaxRounds bounds n.
const MaxRounds = 1000

// MaxPrice bounds a price per core-hour, so that a core-hour of every core that
// a slot may have still fits in Credits.
const MaxPrice = protocol.MaxCredits / protocol.MaxCores

// Band is the price range that a site sets, per core-hour, and the rounds over
// which it expects to cross it.
type Band struct {
	Start  protocol.Credits // s
	Min    protocol.Credits // m, 1..Start
	Rounds int              // n, 1..MaxRounds
}

// Validate reports whether 0 < Min <= Start <= MaxPrice and 1 <= Rounds <= MaxRounds.
func (b Band) Validate() error {
	switch {
	case b.Min <= 0:
		return fmt.Errorf("minimum price %s: want more than 0 per core-hour", b.Min)
	case b.Start < b.Min:
		return fmt.Errorf("start price %s: want at least the minimum price %s", b.Start, b.Min)
	case b.Start > MaxPrice:
		return fmt.Errorf("start price %s: want at most %s per core-hour", b.Start, MaxPrice)
	case b.Rounds < 1 || b.Rounds > MaxRounds:
		return fmt.Errorf("rounds %d: want 1..%d", b.Rounds, MaxRounds)
	}
	return nil
}

// Load is the share of the machine that is allocated: Busy of Capacity cores.
// Real logs exceed their machine now and then, so Busy is read as clamped to
// 0..Capacity; a machine without cores counts as full.
type Load struct {
	Busy     int
	Capacity int
}

// idle is the share that is not allocated, as a fraction.
func (l Load) idle() (free, capacity uint64) {
	if l.Capacity <= 0 {
		return 0, 1
	}
	busy := min(max(l.Busy, 0), l.Capacity)
	return uint64(l.Capacity - busy), uint64(l.Capacity)
}

// Decrement is d: what one round takes off the standing price, rounded half
// away from zero. It is at least 0 and at most Start − Min.
func (b Band) Decrement(l Load) protocol.Credits {
	free, capacity := l.idle()
	divisor := capacity * uint64(b.Rounds)
	hi, lo := bits.Mul64(uint64(b.Start-b.Min), free)
	lo, carry := bits.Add64(lo, divisor/2, 0)
	quotient, _ := bits.Div64(hi+carry, lo, divisor)
	return protocol.Credits(quotient)
}

// Ask is o: what the seller asks when the request stands at a price, and
// whether it bids at all (not below its minimum).
func (b Band) Ask(standing protocol.Credits, l Load) (protocol.Credits, bool) {
	if standing < b.Min {
		return 0, false
	}
	return max(standing-b.Decrement(l), b.Min), true
}

// Package pricing has the price rules of a seller: what it asks while a price stands in
// a request, given how busy its machine is.
//
//	d = (s − m)(1 − l)/n
//	list: o = s while r > s, else max(r − d, m)
//	ramp: o = max(r − d, m)
//
// with s the start price, m the minimum, l the share of the machine that is allocated at
// the first instant of the offered slot without the job itself, n the rounds that the
// seller expects, and r the price standing in the request. A seller whose minimum is above
// r does not bid. List is the rule of live sites (docs/decisions/0029). Ramp is that of 002
// §6.2.3, whose asks follow the buyer's ceiling. The source lost the formula; the terms and
// their reading are those of its text, and n = 4 is what its authors' program divides by.
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

// MaxRounds bounds n. With a list price it is at most MaxListRounds, so that rivals reach their
// minimum before bidding ends: the first round opens, and the last one shows that nobody improves.
const (
	MaxRounds     = 1000
	MaxListRounds = protocol.MostRounds - 2
)

// MaxPrice bounds a price per core-hour, so that a core-hour of every core that
// a slot may have still fits in Credits.
const MaxPrice = protocol.MaxCredits / protocol.MaxCores

// Rule names what a seller asks while a price stands.
type Rule string

// The rules. The empty Rule is List.
const (
	List Rule = "list" // opens at the start price and goes down from there
	Ramp Rule = "ramp" // goes down from the standing price, wherever it is
)

// Band is the price range that a site sets, per core-hour, and the rounds over
// which it expects to cross it.
type Band struct {
	Start  protocol.Credits // s
	Min    protocol.Credits // m, 1..Start
	Rounds int              // n, 1..MaxRounds, or MaxListRounds
	Rule   Rule
}

// Validate reports whether 0 < Min <= Start <= MaxPrice, 1 <= Rounds <=
// MaxRounds, and Rule is known.
func (b Band) Validate() error {
	switch {
	case b.Min <= 0:
		return fmt.Errorf("minimum price %s: want more than 0 per core-hour", b.Min)
	case b.Start < b.Min:
		return fmt.Errorf("start price %s: want at least the minimum price %s", b.Start, b.Min)
	case b.Start > MaxPrice:
		return fmt.Errorf("start price %s: want at most %s per core-hour", b.Start, MaxPrice)
	case b.Rule != "" && b.Rule != List && b.Rule != Ramp:
		return fmt.Errorf("pricing %.32q: want %s or %s", string(b.Rule), List, Ramp)
	case b.Rounds < 1 || b.Rounds > MaxRounds:
		return fmt.Errorf("rounds %d: want 1..%d", b.Rounds, MaxRounds)
	case b.Rule != Ramp && b.Rounds > MaxListRounds:
		return fmt.Errorf("rounds %d: want 1..%d, since bidding ends after %d, or pricing %s", b.Rounds, MaxListRounds, protocol.MostRounds, Ramp)
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
	if standing > b.Start && b.Rule != Ramp {
		return b.Start, true
	}
	return max(standing-b.Decrement(l), b.Min), true
}

// Outbids reports whether a seller bids on when another's equal offer leads. In 002 each
// seller of equal offers takes its own for the best.
func (b Band) Outbids() bool { return b.Rule != Ramp }

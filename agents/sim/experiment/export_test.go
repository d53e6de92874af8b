package experiment

import (
	"fmt"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/protocol"
)

// Bench opens the market of the twenty and returns what makes one auction in it.
func Bench(l *Lab) func() bool {
	sellers := l.twenty()
	l.issue(1, sellers)
	s := l.stage(play{seed: 1, sellers: sellers, users: 1})
	s.watch.quiet = true
	n := 0
	return func() bool {
		n++
		return s.buy(0, fmt.Sprintf("bench-%d", n), early(5, 15*time.Second), job{"bench", 1, time.Hour, credits(70)}).Settled
	}
}

// Payment is what a seller gets for its units.
type Payment struct{ Units, Credits int }

// Vickrey awards units to sellers with minima, and room for so many units each.
func Vickrey(minima, room []int, units, ceiling int) map[int]Payment {
	b := bazaar{ceiling: credits(ceiling), units: units}
	for i, least := range minima {
		b.stalls = append(b.stalls, stall{Band: pricing.Band{Min: credits(least)}, cores: room[i] * bazaarCores / units})
	}
	pays := map[int]Payment{}
	for _, l := range b.vickrey() {
		pays[l.stall] = Payment{l.units, int(l.pay / protocol.Credit)}
	}
	return pays
}

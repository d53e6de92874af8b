package experiment

import (
	"fmt"
	"time"
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

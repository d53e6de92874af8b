package experiment

import (
	"context"
	"errors"
	"testing"

	"ramp/agents"
	"ramp/agents/index"
)

// One index of five cheats. Prices stay within 1 %, every user gets a quote, and as many
// sellers as without it are called and bid.
func TestACheatingIndexMovesNoPrice(t *testing.T) {
	logs, err := LoadLogs("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLab(logs)
	if err != nil {
		t.Fatal(err)
	}
	l.Buyers = 40
	l.issueCrowd(5)
	c, err := l.newCrowd(500, t.Context().Err, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	honest := c.play(500, l.Buyers, nil)
	for kind, change := range cheats() {
		t.Run(kind, func(t *testing.T) {
			x := c.play(500, l.Buyers, func(i int, r agents.Role) agents.Role {
				if i == 1 {
					return &cheat{Role: r, change: change}
				}
				return r
			})
			t.Logf("price %.4f, honest %.4f; %d of %d quotes; %d proposals counted, honest %d; %.2f s, honest %.2f",
				x.price, honest.price, x.settled, l.Buyers, x.offers, honest.offers, x.seconds, honest.seconds)
			if x.settled < l.Buyers || x.price > 1.01*honest.price || float64(x.offers) < .99*float64(honest.offers) || x.seconds > honest.seconds+index.Patience.Seconds() {
				t.Error("it moves something")
			}
		})
	}
}

// An interrupt ends a crowd while its sellers are made, and while a market plays.
func TestACrowdStopsAtOnce(t *testing.T) {
	logs, err := LoadLogs("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLab(logs)
	if err != nil {
		t.Fatal(err)
	}
	l.issueCrowd(5)
	left := 10
	stop := func() error {
		if left--; left < 0 {
			return context.Canceled
		}
		return nil
	}
	quiet := func(int, int) {}
	if _, err := l.newCrowd(20, stop, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("sellers: %v", err)
	}
	left = 1000
	c, err := l.newCrowd(20, stop, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if x := c.play(20, 40, nil); x.settled > 0 {
		t.Errorf("%d users got a quote after the interrupt", x.settled)
	}
}

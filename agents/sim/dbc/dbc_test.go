package dbc

import (
	"math/rand/v2"
	"ramp/agents/user/sweep"
	"ramp/protocol"
	"strconv"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	var rs []Resource
	for i, x := range [][3]int64{{4, 515, 8}, {4, 377, 4}, {4, 377, 3}, {2, 377, 3}, {2, 380, 1}, {6, 410, 5}, {16, 410, 5}, {16, 410, 4}, {2, 380, 1}, {4, 410, 6}, {8, 377, 3}} {
		rs = append(rs, Resource{"R" + strconv.Itoa(i), int(x[0]), x[1] * 1e6, protocol.Credits(x[2]) * protocol.Credit})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var l []int64
	for range 200 {
		l = append(l, 10_000_000_000+r.Int64N(1_000_000_000))
	}
	for _, st := range sweep.Strategies() {
		for _, d := range []int{100, 600, 1100, 1600, 2100, 2600, 3100, 3600} {
			t0 := time.Now()
			o := Run(rs, l, sweep.Terms{st, time.Duration(d) * Unit, 22000 * protocol.Credit})
			t.Log(st, d, o.Done, o.Time, o.Spent, o.Per, time.Since(t0))
		}
		for _, b := range []int{5000, 8000, 12000, 16000, 20000, 22000} {
			o := Run(rs, l, sweep.Terms{st, 100 * Unit, protocol.Credits(b) * protocol.Credit})
			t.Log(st, "D100", b, o.Done, o.Time, o.Spent)
		}
		for _, b := range []int{100, 600, 1100, 1600} {
			o := Run(rs, l, sweep.Terms{st, time.Duration(b) * Unit, 5000 * protocol.Credit})
			t.Log(st, "B5000", b, o.Done, o.Time, o.Spent)
		}
	}
}

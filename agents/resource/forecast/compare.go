package forecast

import (
	"cmp"
	"slices"

	"ramp/agents/workload"
)

// Comparison is the same asks under two views.
type Comparison struct {
	WallTime  Sales `json:"wall_time"`
	Sharpened Sales `json:"sharpened"`
}

// Compare plays a log twice against the same n asks, at random instants of what
// is left of the log after its first tenth, in which a site only learns: hours of
// a 64th, a 16th and a quarter of the machine, in five minutes, an hour and
// twelve hours. Draw is a source of chance: a number from 0 to below n. The
// level must be valid; an n of more than MaxAsks is an error.
func Compare(l *workload.Log, n int, view Sharpened, draw func(n int64) int64) (Comparison, error) {
	if err := view.Level.Validate(); err != nil {
		return Comparison{}, err
	}
	first, last := arrivals(l)
	asks := Asks(first+(last-first)/10, last, n, kinds(l.Capacity()), draw)
	var c Comparison
	var err error
	if c.WallTime, err = Sell(l, asks, WallTime{}); err != nil {
		return c, err
	}
	c.Sharpened, err = Sell(l, asks, view)
	return c, err
}

// arrivals is when the first and the last job that ran came.
func arrivals(l *workload.Log) (first, last int64) {
	first = workload.Forever
	for b := range l.Bursts() {
		first, last = min(first, b.Submit), max(last, b.Submit)
	}
	return min(first, last), last
}

func kinds(capacity int) []Ask {
	var out []Ask
	for _, ahead := range []int64{5 * 60, 3600, 12 * 3600} {
		for _, share := range []int{64, 16, 4} {
			out = append(out, Ask{Start: ahead, Wall: 3600, Cores: max(1, capacity/share)})
		}
	}
	return out
}

// Asks draws n asks at random instants of [from, to), each of a kind that is drawn
// too, in order of time. The Start of a kind counts from the ask; its At is not
// used. Without kinds there are none.
func Asks(from, to int64, n int, kinds []Ask, draw func(n int64) int64) []Ask {
	var asks []Ask
	for range min(n, n*len(kinds)) {
		a := kinds[draw(int64(len(kinds)))]
		a.At = from + draw(max(to-from, 1))
		a.Start += a.At
		asks = append(asks, a)
	}
	slices.SortStableFunc(asks, func(a, b Ask) int { return cmp.Compare(a.At, b.At) })
	return asks
}

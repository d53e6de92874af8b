package experiment_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/sim/experiment"
)

// The oracle tries every way to share the units among the sellers.
func TestVickreyPaysWhatTheOthersWouldCostMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, ceiling := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "units"), rapid.IntRange(1, 60).Draw(t, "ceiling")
		var minima, room []int
		for range rapid.IntRange(1, 4).Draw(t, "sellers") {
			minima = append(minima, rapid.IntRange(1, 40).Draw(t, "minimum"))
			room = append(room, rapid.IntRange(0, 4).Draw(t, "room"))
		}
		all, sold := least(minima, room, units, units*ceiling)
		pays := experiment.Vickrey(minima, room, units, ceiling)
		if sold != (len(pays) > 0) {
			t.Fatalf("pays %v, sold %v", pays, sold)
		}
		for i, pay := range pays {
			others := slices.Clone(room)
			others[i] = 0
			without, _ := least(minima, others, units, units*ceiling)
			if want := without - (all - minima[i]*pay.Units); pay.Credits != want {
				t.Fatalf("seller %d gets %d for %d units, want %d", i, pay.Credits, pay.Units, want)
			}
		}
	})
}

// least is the cheapest way to get all units for at most a sum, or that sum.
func least(minima, room []int, units, most int) (cost int, sold bool) {
	cost = most
	var try func(i, left, sum int)
	try = func(i, left, sum int) {
		if left == 0 && sum <= cost {
			cost, sold = sum, true
		}
		for n := 0; i < len(minima) && n <= min(left, room[i]); n++ {
			try(i+1, left-n, sum+n*minima[i])
		}
	}
	try(0, units, 0)
	return cost, sold
}

package experiment_test

import "testing"

// Seed 2 has few sellers that are nearly as cheap as the cheapest.
func TestACrowdFindsPricesAsLowAsAskingEverybody(t *testing.T) {
	for i, sellers := range []int{500, 1000} {
		l := lab(t)
		l.Seed, l.Crowd, l.Buyers = uint64(i+1), sellers, 100
		for _, s := range run(t, l, "scale").Shapes {
			t.Logf("%v %s: %s (want %s)", s.Held, s.Name, s.Measured, s.Expected)
			if !s.Held {
				t.Errorf("%d sellers: not held: %s", sellers, s.Name)
			}
		}
	}
}

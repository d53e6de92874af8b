package experiment_test

import "testing"

func TestACrowdFindsPricesAsLowAsAskingEverybody(t *testing.T) {
	l := lab(t)
	l.Crowd, l.Buyers = 500, 40
	for _, s := range run(t, l, "scale").Shapes {
		t.Logf("%v %s: %s (want %s)", s.Held, s.Name, s.Measured, s.Expected)
		if !s.Held {
			t.Errorf("not held: %s", s.Name)
		}
	}
}

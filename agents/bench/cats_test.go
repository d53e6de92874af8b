package bench_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramp/agents/bench"
	"ramp/protocol/clearing"
)

func parse(t *testing.T, text string) *bench.CATS {
	t.Helper()
	c, err := bench.ParseCATS(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestABestSetOfBidsIsALeastCost(t *testing.T) {
	c := parse(t, "%% an instance\n\ngoods 3\nbids 4\ndummy 1\n\n0\t5.5\t0\t1\t#\n1 4 2 3 #\n2 3.25 0 3 #\n3 2 1 #\n")
	s, err := clearing.Solve(c.Reverse())
	// Bids 0 and 1 are worth 9.5; 1, 2 and 3 would be 9.25, but 1 and 2 exclude each other.
	if k := c.Fallback(); err != nil || !s.Exact || 3*k-s.Cost != 9_500_000 {
		t.Errorf("K %s, cost %s, exact %t (%v)", k, s.Cost, s.Exact, err)
	}
}

func TestBadInstancesAreRefused(t *testing.T) {
	head := "goods 3\nbids 1\ndummy 2\n"
	for text, want := range map[string]string{
		"":                                "without 'goods'",
		"goods 0\n":                       `line 1: "goods 0": want 'goods N' with N in 1..256`,
		"goods 3\ngoods 3\n":              `a second line "goods"`,
		"0 1 0 #\n":                       `line 1: "0" before 'goods'`,
		"goods 3\nbids x\n":               "line 2",
		head:                              "ends after 0 of 1 bids",
		head + "0 1 0\n":                  "want a number, a price, goods and '#'",
		head + "0 1 #\n":                  "want a number, a price, goods and '#'",
		head + "0 -1 0 #\n":               `line 4: bid 0: price "-1"`,
		head + "0 NaN 0 #\n":              `price "NaN"`,
		head + "0 1 5 #\n":                `good "5": want a number in 0..4`,
		head + "0 1 2 2 #\n":              "good 2 twice",
		head + "0 1 0 3 4 #\n":            "dummy goods 3 and 4",
		head + "0 1 3 #\n":                "want at least one good below 3",
		head + "0 1 0 #\n1 1 0 #\n":       "line 5: more than 1 bids",
		head + strings.Repeat("x", 1<<17): "line 4",
	} {
		if _, err := bench.ParseCATS(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
}

func FuzzParseCATS(f *testing.F) {
	for _, kind := range catsKinds() {
		f.Add(generateCATS(kind, 1, 12, 20))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := bench.ParseCATS(strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		for _, b := range c.Reverse().Bids {
			if err := b.Validate(c.Goods); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestInstancesAreSolvedAsByCBC writes instances of every kind, and compares with cbc where
// it is installed.
func TestInstancesAreSolvedAsByCBC(t *testing.T) {
	dir := t.TempDir()
	if _, err := exec.LookPath("cbc"); err != nil {
		t.Log("cbc (Debian coinor-cbc) is not installed")
	}
	for _, kind := range catsKinds() {
		if err := os.WriteFile(filepath.Join(dir, kind), []byte(generateCATS(kind, 3, 24, 60)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err := (&bench.ClearingBench{Dir: dir, Seconds: 60}).Run(t.Context(), func(f bench.ClearingFigures) {
		n++
		if !f.Proved || f.Gap != 0 || f.Steps == 0 {
			t.Errorf("%+v", f)
		}
		if f.CBC != nil && (!f.CBC.Proved || math.Abs(f.CBC.Cost-float64(f.Cost)/1e6) > 1e-4) {
			t.Errorf("%s: cost %s, cbc %+v", f.File, f.Cost, *f.CBC)
		}
	})
	if err != nil || n != len(catsKinds()) {
		t.Fatal(n, err)
	}
}

package message_test

import (
	"testing"

	"ramp/protocol/message"
)

func TestWants(t *testing.T) {
	for _, c := range []struct {
		name, output string
		array        bool
		patterns     []string
		want         bool
	}{
		{"without patterns everything", "a/b", false, nil, true},
		{"a pattern", "x.csv", false, []string{"*.csv"}, true},
		{"another name", "x.txt", false, []string{"*.csv"}, false},
		{"a star ends at a directory", "a/x.csv", false, []string{"*.csv"}, false},
		{"a directory with all in it", "plots/a/b.png", false, []string{"plo*"}, true},
		{"one of several", "b", false, []string{"a", "b"}, true},
		{"below the index", "7/x.csv", true, []string{"*.csv"}, true},
		{"the index in the name", "7/out-7.csv", true, []string{"out-{}.csv"}, true},
		{"as sbatch writes it", "7/out-7.csv", true, []string{"out-%a.csv"}, true},
		{"another index", "7/out-8.csv", true, []string{"out-{}.csv"}, false},
		{"its log", "7/log", true, []string{"*.csv"}, true},
		{"its exit code", "7/exit", true, []string{"*.csv"}, true},
		{"a log of no array", "7/log", false, []string{"*.csv"}, false},
	} {
		if got := (message.Program{Array: c.array, Outputs: c.patterns}).Wants(c.output); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

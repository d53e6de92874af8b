package words_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/words"
)

func TestTimesOfOthersAreLocalForPeople(t *testing.T) {
	old := time.Local
	defer func() { time.Local = old }()
	time.Local = time.FixedZone("IST", 5*3600+1800)
	for in, want := range map[string]string{
		"the slot ended at 2026-11-25T20:59:39.25Z": "the slot ended at 2026-11-26 02:29:39 IST",
		"not at 2026-11-25T17:35:20-05:00: expired": "not at 2026-11-26 04:05:20 IST: expired",
		"from 2026-11-25T20:00:00Z (now)\x1b[2J":    "from 2026-11-26 01:30:00 IST (now) [2J",
		`by "2026-11-25T20:00:00Z": has passed`:     `by "2026-11-25T20:00:00Z": has passed`,
		"'x set --deadline 2026-11-25T20:00:00Z'":   "'x set --deadline 2026-11-25T20:00:00Z'",
		"deadline=2026-11-25T20:00:00Z":             "deadline=2026-11-25T20:00:00Z",
		"99 at 2026-13-45T20:00:00Z":                "99 at 2026-13-45T20:00:00Z",
		"want one such as 2026-11-25T20:00:00Z":     "want one such as 2026-11-25T20:00:00Z",
		"nothing":                                   "nothing",
	} {
		if got := words.ForPeople(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// A text with a number in it may be folded: a statement stays a table on 80 columns.
func TestAStatementIsATableOn80Columns(t *testing.T) {
	lines := words.TableLines([][]string{
		{"entry", "time (EST)", "amount", "held", "balance", "currency", "what"},
		{"13", "Nov 25 16:23", "1000.00", "0.00", "1000.00", "CPU", "credit invitation c36ac464"},
		{"17", "Nov 25 16:23", "-0.02", "0.00", "998.98", "CPU", "settle wing-2 (p8e0850b)"},
	}, 80)
	if want := "  entry  time (EST)    amount   held  balance  currency  what"; lines[0] != want {
		t.Errorf("the first line is %q, want %q", lines[0], want)
	}
	for _, l := range lines {
		if len(l) > 80 {
			t.Errorf("%d columns: %q", len(l), l)
		}
	}
}

// Names that are too long fold after a punctuation mark, and a long heading folds too.
func TestLongNamesFoldWhereTheyCan(t *testing.T) {
	for want, rows := range map[string][][]string{
		"  slurm-cluster-of-the-\n  physics-department": {{"slurm-cluster-of-the-physics-department"}},
		"  user   fluid-dynamics@\n         7lfwiy35xklni2nud\n         kf7yksuky3soqqn\n  files  m/long": {
			{"user", "fluid-dynamics@7lfwiy35xklni2nudkf7yksuky3soqqn"}, {"files", "m/long"},
		},
	} {
		if got := strings.Join(words.TableLines(rows, 26), "\n"); got != want {
			t.Errorf("shown as\n%s\nwant\n%s", got, want)
		}
	}
}

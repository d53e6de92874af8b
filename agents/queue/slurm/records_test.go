package slurm_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue/slurm"
)

func TestTimesAsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, h, m, s := rapid.IntRange(0, 400).Draw(t, "d"), rapid.IntRange(0, 23).Draw(t, "h"), rapid.IntRange(0, 59).Draw(t, "m"), rapid.IntRange(0, 59).Draw(t, "s")
		text := fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
		switch { // as squeue leaves out what is nothing
		case d == 0 && h == 0:
			text = fmt.Sprintf("%d:%02d", m, s)
		case d == 0:
			text = fmt.Sprintf("%d:%02d:%02d", h, m, s)
		}
		want := time.Duration(((d*24+h)*60+m)*60+s) * time.Second
		if got, err := slurm.Elapsed(text); err != nil || got != want {
			t.Fatalf("%s is %s, %v; want %s", text, got, err, want)
		}
	})
	for _, bad := range []string{"", "5", "a:b", "1:2:3:4", "-1:00", "99999-00:00", "1-"} {
		if _, err := slurm.Elapsed(bad); err == nil {
			t.Errorf("%q is a time", bad)
		}
	}
}

// Of the same five jobs, each version told its way: one exited with 3, one well, two were
// killed, and one was cancelled.
func TestHowJobsEndedAsEachVersionPrintsIt(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		b, err := os.ReadFile("testdata/squeue-" + version + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := slurm.Records(b); err != nil || !slices.Equal(got, []int{143, 0, 3, 137, 143}) {
			t.Errorf("%s: exit codes %v, %v", version, got, err)
		}
	}
}

func FuzzRecords(f *testing.F) {
	const head = "NAME|COMMENT|JOBID|STATE|START_TIME|END_TIME|EXIT_CODE|TIME|REASON|\n"
	f.Add([]byte(head))
	f.Add([]byte(head + "ramp-abc-x.1|job 0123|1|FAILED|2026-11-21T11:28:15|2026-11-21T11:28:18|36608|0:03|None|\n"))
	f.Add([]byte(head + "a|(null)|2|PENDING|N/A|N/A|0|1-00:00:00|a|b|\na|b|3|RUNNING|2026-11-21T11:28:15|Unknown|0|INVALID|None|\n"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := slurm.Records(b)
		if lines := strings.Count(string(b), "\n"); err == nil && len(list) != lines-1 {
			t.Fatalf("%d jobs in %d lines", len(list), lines)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("the error is more than a line: %v", err)
		}
	})
}

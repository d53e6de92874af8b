package slurm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// Whatever Slurm and the job's own files say, in whatever order a job is ended.
func TestHowAJobEnded(t *testing.T) {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	slot := protocol.Slot{Start: start, End: start.Add(10 * time.Minute), Cores: 2}
	at := func(minutes int) string {
		return start.Add(time.Duration(minutes) * time.Minute).Format("2006-01-02T15:04:05")
	}
	line := func(state string, end, wait int) string {
		return fmt.Sprintf("n|c|7|%s|%s|%s|%d|%d:00|", state, at(0), at(end), wait, end)
	}
	exit := func(code, asked int, end time.Duration) string {
		return fmt.Sprintf("%d %d %d %d\n0m0.010s 0m0.000s\n1m30.500s 0m9.500s\n", code, asked, start.UnixMilli()+250, start.Add(end).UnixMilli())
	}
	for name, c := range map[string]struct {
		line, exit     string
		lost, unwanted bool // it left no trace; its owner wanted it to end
		state          protocol.JobState
		code           int
	}{
		"it ended well":                       {line("COMPLETED", 3, 0), exit(0, 0, 3*time.Minute), false, false, protocol.JobExited, 0},
		"it failed":                           {line("FAILED", 3, 3<<8), exit(3, 0, 3*time.Minute), false, false, protocol.JobExited, 3},
		"it was killed by a signal":           {line("FAILED", 3, 139<<8), exit(139, 0, 3*time.Minute), false, false, protocol.JobExited, 139},
		"its script was killed by a signal":   {line("FAILED", 3, 9), "", false, false, protocol.JobExited, 137},
		"it says another code than Slurm":     {line("FAILED", 3, 3<<8), exit(0, 0, 3*time.Minute), false, false, protocol.JobExited, 3},
		"it left nothing":                     {line("FAILED", 3, 125<<8), "", true, false, protocol.JobLost, 0},
		"its owner killed it":                 {line("CANCELLED", 3, 143<<8), exit(143, 1, 3*time.Minute), false, true, protocol.JobKilled, 0},
		"its owner killed it before it began": {"n|c|7|CANCELLED|N/A|" + at(3) + "|0|0:00|", "", true, true, protocol.JobKilled, 0},
		"it ended before the kill came":       {line("FAILED", 3, 4<<8), exit(4, 0, 3*time.Minute), false, true, protocol.JobExited, 4},
		"an administrator cancelled it":       {line("CANCELLED", 3, 15), exit(143, 1, 3*time.Minute), false, false, protocol.JobLost, 0},
		"its slot ended it":                   {line("FAILED", 10, 124<<8), exit(124, 0, 10*time.Minute-time.Second), false, false, protocol.JobExpired, 0},
		"its slot ended it the hard way":      {line("CANCELLED", 10, 9), "", false, false, protocol.JobExpired, 0},
		"Slurm's own limit ended it":          {line("TIMEOUT", 10, 0), exit(143, 1, 10*time.Minute), false, false, protocol.JobExpired, 0},
		"it ended by itself at the last":      {line("COMPLETED", 10, 0), exit(0, 0, 10*time.Minute-time.Second), false, false, protocol.JobExited, 0},
		"it exits with 124 in the middle":     {line("FAILED", 3, 124<<8), exit(124, 0, 3*time.Minute), false, false, protocol.JobExited, 124},
		"it never began":                      {"n|c|7|CANCELLED|N/A|" + at(10) + "|0|0:00|", "", true, false, protocol.JobLost, 0},
		"its node failed":                     {line("NODE_FAIL", 3, 0), "", false, false, protocol.JobLost, 0},
		"it was out of memory":                {line("OUT_OF_MEMORY", 3, 137<<8), exit(137, 0, 3*time.Minute), false, false, protocol.JobExited, 137},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := slurm.Ended(start.Add(time.Hour), slot, c.line, c.exit, !c.lost, c.unwanted)
			if err != nil || s.State != c.state || s.Exit != c.code || s.Validate() != nil {
				t.Fatalf("%+v, %v; want %s with %d", s, err, c.state, c.code)
			}
			if c.exit != "" && s.Usage.CPU != 100*time.Second {
				t.Errorf("CPU time %s", s.Usage.CPU)
			}
			if c.lost && (s.Usage != protocol.Usage{} || !s.Started.IsZero()) {
				t.Errorf("it never ran, and used %+v since %s", s.Usage, s.Started)
			}
		})
	}
}

// The account of a job can write what it likes into the file of its end. It ran as
// long as Slurm says, and used no more than its cores can give.
func TestAJobCannotUseMoreThanItsCores(t *testing.T) {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	slot := protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 3}
	rapid.Check(t, func(t *rapid.T) {
		ran := rapid.IntRange(0, 59).Draw(t, "minutes")
		end := start.Add(time.Duration(ran) * time.Minute)
		line := fmt.Sprintf("n|c|7|COMPLETED|%s|%s|0|%d:00|", start.Format("2006-01-02T15:04:05"), end.Format("2006-01-02T15:04:05"), ran)
		from, until := rapid.Int64Range(-5, 4000).Draw(t, "from"), rapid.Int64Range(-5, 4000).Draw(t, "until")
		exit := fmt.Sprintf("0 0 %d %d\n0m0s 0m0s\n%dm%ds %dm0s\n", start.UnixMilli()+from*1000, start.UnixMilli()+until*1000,
			rapid.IntRange(0, 20_000_000).Draw(t, "user"), rapid.IntRange(0, 60).Draw(t, "seconds"), rapid.IntRange(0, 300).Draw(t, "system"))
		s, err := slurm.Ended(end.Add(time.Hour), slot, line, exit, true, false)
		if err != nil {
			t.Fatal(err)
		}
		wall := time.Duration(ran) * time.Minute
		if off := (s.Usage.Wall - wall).Abs(); s.Validate() != nil || off > time.Second || s.Usage.CPU > 3*(s.Usage.Wall+time.Second) {
			t.Fatalf("%+v after %s", s, wall)
		}
	})
}

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
	for text, want := range map[string]time.Duration{"0m0.000000s": 0, "1m2.5s": 62500 * time.Millisecond, "0m0,25s": 250 * time.Millisecond} {
		if got, err := slurm.Clocked(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "m", "1m", "-1m0s", "0m-1s", "0mNaNs", "0mInfs", "0m61s", "99999999999m0s"} {
		if _, err := slurm.Clocked(bad); err == nil {
			t.Errorf("%q is a time", bad)
		}
	}
}

func FuzzRecords(f *testing.F) {
	const head = "NAME|COMMENT|JOBID|STATE|START_TIME|END_TIME|EXIT_CODE|TIME|\n"
	f.Add([]byte(head))
	f.Add([]byte(head + "ramp-abc-x.1|job 0123|1|FAILED|2026-11-21T11:28:15|2026-11-21T11:28:18|36608|0:03|\n"))
	f.Add([]byte(head + "a|(null)|2|PENDING|N/A|N/A|0|1-00:00:00|\na|b|3|RUNNING|2026-11-21T11:28:15|Unknown|0|INVALID|\n"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := slurm.Records(b)
		n := 0
		for _, of := range list {
			n += of
		}
		if lines := strings.Count(string(b), "\n"); err == nil && n != lines-1 {
			t.Fatalf("%d jobs in %d lines", n, lines)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("the error is more than a line: %v", err)
		}
	})
}

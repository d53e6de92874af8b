package script_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// told is what a Watch says of a job that has left these traces.
func told(tb fataler, slot protocol.Slot, r script.Report, exit string, begun, unwanted bool) (protocol.JobStatus, error) {
	dir, err := os.MkdirTemp("", "job")
	if err != nil {
		return protocol.JobStatus{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of the test's
	job := message.Job{ID: "j", Dir: dir, Slot: slot}
	files := map[string]string{"run/x": "", "control/x": ""}
	if exit != "" {
		files["run/exit"] = exit
	}
	if unwanted {
		files["control/kill.json"] = "{}"
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			return protocol.JobStatus{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return protocol.JobStatus{}, err
		}
	}
	if begun {
		if err := os.Symlink("7#0", filepath.Join(dir, "run", "began")); err != nil {
			return protocol.JobStatus{}, err
		}
	}
	w := script.NewWatch("the batch system", time.Second, time.Second)
	ask := func([]message.Job) (map[string]script.Entry, error) {
		return map[string]script.Entry{"j": {Report: r}}, nil
	}
	all, err := w.Statuses(slot.End.Add(time.Hour), []message.Job{job}, ask)
	if err == nil {
		again, err := w.Statuses(slot.End.Add(2*time.Hour), []message.Job{job}, nil) // it is written down
		if err != nil || again["j"] != all["j"] {
			tb.Fatalf("first %+v, then %+v, %v", all, again, err)
		}
	}
	return all["j"], err
}

type fataler interface{ Fatalf(string, ...any) }

// Whatever the batch system and the job's own files say, in whatever order a job is ended.
func TestHowAJobEnded(t *testing.T) {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	slot := protocol.Slot{Start: start, End: start.Add(10 * time.Minute), Cores: 2}
	report := func(how script.How, minutes, exit int) script.Report {
		ran := time.Duration(minutes) * time.Minute
		return script.Report{How: how, Start: start, End: start.Add(ran), Exit: exit, Ran: ran}
	}
	exit := func(code, asked int, end time.Duration) string {
		return fmt.Sprintf("%d %d %d %d\n0m0.010s 0m0.000s\n1m30.500s 0m9.500s\n", code, asked, start.UnixMilli()+250, start.Add(end).UnixMilli())
	}
	for name, c := range map[string]struct {
		report         script.Report
		exit           string
		lost, unwanted bool // it left no trace; its owner wanted it to end
		state          protocol.JobState
		code           int
	}{
		"it ended well":                                {report(script.Exited, 3, 0), exit(0, 0, 3*time.Minute), false, false, protocol.JobExited, 0},
		"it failed":                                    {report(script.Exited, 3, 3), exit(3, 0, 3*time.Minute), false, false, protocol.JobExited, 3},
		"it was killed by a signal":                    {report(script.Exited, 3, 139), exit(139, 0, 3*time.Minute), false, false, protocol.JobExited, 139},
		"its script was killed by a signal":            {report(script.Exited, 3, 137), "", false, false, protocol.JobExited, 137},
		"it says another code than the batch system":   {report(script.Exited, 3, 3), exit(0, 0, 3*time.Minute), false, false, protocol.JobExited, 3},
		"it left nothing":                              {report(script.Exited, 3, 125), "", true, false, protocol.JobLost, 0},
		"its owner killed it":                          {report(script.Cancelled, 3, 143), exit(143, 1, 3*time.Minute), false, true, protocol.JobKilled, 0},
		"its owner killed it before it began":          {script.Report{How: script.Cancelled, End: start.Add(3 * time.Minute)}, "", true, true, protocol.JobKilled, 0},
		"it ended before the kill came":                {report(script.Exited, 3, 4), exit(4, 0, 3*time.Minute), false, true, protocol.JobExited, 4},
		"an administrator cancelled it":                {report(script.Cancelled, 3, 0), exit(143, 1, 3*time.Minute), false, false, protocol.JobLost, 0},
		"its slot ended it":                            {report(script.Exited, 10, 124), exit(124, 0, 10*time.Minute-time.Second), false, false, protocol.JobExpired, 0},
		"its slot ended it the hard way":               {report(script.Cancelled, 10, 0), "", false, false, protocol.JobExpired, 0},
		"the batch system's own limit ended it":        {report(script.Limit, 10, 0), exit(143, 1, 10*time.Minute), false, false, protocol.JobExpired, 0},
		"it ended by itself at the last":               {report(script.Exited, 10, 0), exit(0, 0, 10*time.Minute-time.Second), false, false, protocol.JobExited, 0},
		"it exits with 124 in the middle":              {report(script.Exited, 3, 124), exit(124, 0, 3*time.Minute), false, false, protocol.JobExited, 124},
		"it never began":                               {script.Report{How: script.Cancelled, End: start.Add(10 * time.Minute)}, "", true, false, protocol.JobLost, 0},
		"its node failed":                              {report(script.Failed, 3, 0), "", false, false, protocol.JobLost, 0},
		"its node failed when it had ended":            {report(script.Failed, 6, 0), exit(3, 0, 3*time.Minute), false, false, protocol.JobExited, 3},
		"the limit came late, as after an outage":      {report(script.Limit, 13, 0), exit(0, 0, 3*time.Minute), false, false, protocol.JobExited, 0},
		"somebody cancelled what had ended":            {report(script.Cancelled, 12, 0), exit(7, 0, 3*time.Minute), false, false, protocol.JobExited, 7},
		"it says that it ended after it was cancelled": {report(script.Cancelled, 3, 0), exit(0, 0, 6*time.Minute), false, false, protocol.JobLost, 0},
		"it was out of memory":                         {report(script.Exited, 3, 137), exit(137, 0, 3*time.Minute), false, false, protocol.JobExited, 137},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := told(t, slot, c.report, c.exit, !c.lost, c.unwanted)
			if err != nil || s.State != c.state || s.Exit != c.code || s.Validate() != nil {
				t.Fatalf("%+v, %v; want %s with %d", s, err, c.state, c.code)
			}
			if c.exit != "" && s.Usage.CPU != 100*time.Second {
				t.Errorf("CPU time %s", s.Usage.CPU)
			}
			if s.State == protocol.JobExited && c.report.How != script.Exited && s.Usage.Wall != 3*time.Minute-250*time.Millisecond {
				t.Errorf("it ran for %s", s.Usage.Wall)
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
		report := script.Report{Start: start, End: end, Ran: end.Sub(start)}
		from, until := rapid.Int64Range(-5, 4000).Draw(t, "from"), rapid.Int64Range(-5, 4000).Draw(t, "until")
		exit := fmt.Sprintf("0 0 %d %d\n0m0s 0m0s\n%dm%ds %dm0s\n", start.UnixMilli()+from*1000, start.UnixMilli()+until*1000,
			rapid.IntRange(0, 20_000_000).Draw(t, "user"), rapid.IntRange(0, 60).Draw(t, "seconds"), rapid.IntRange(0, 300).Draw(t, "system"))
		s, err := told(t, slot, report, exit, true, false)
		if err != nil {
			t.Fatal(err)
		}
		wall := time.Duration(ran) * time.Minute
		if off := (s.Usage.Wall - wall).Abs(); s.Validate() != nil || off > time.Second || s.Usage.CPU > 3*(s.Usage.Wall+time.Second) {
			t.Fatalf("%+v after %s", s, wall)
		}
	})
}

func TestTimesOfAShell(t *testing.T) {
	for text, want := range map[string]time.Duration{"0m0.000000s": 0, "1m2.5s": 62500 * time.Millisecond, "0m0,25s": 250 * time.Millisecond} {
		if got, err := script.Clocked(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "m", "1m", "-1m0s", "0m-1s", "0mNaNs", "0mInfs", "0m61s", "99999999999m0s"} {
		if _, err := script.Clocked(bad); err == nil {
			t.Errorf("%q is a time", bad)
		}
	}
}

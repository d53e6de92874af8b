package script_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What its owner killed before it began, and the batch system has dropped, is not
// unknown: that would have it submitted again.
func TestAJobThatWasKilledBeforeItBegan(t *testing.T) {
	job := message.Job{ID: "j", Dir: t.TempDir(), Argv: []string{"true"}, Slot: protocol.Slot{Start: time.Now(), End: time.Now().Add(time.Hour), Cores: 1}}
	w := script.NewWatch("the batch system", time.Second, time.Second)
	none := func([]message.Job) (map[string]script.Entry, error) { return nil, nil }
	if _, known, why := w.Prepare(time.Now(), job, none); known || why != nil {
		t.Fatalf("known %v, %+v", known, why)
	}
	if err := script.Unwanted(time.Now(), job); err != nil {
		t.Fatal(err)
	}
	if _, known, why := w.Prepare(time.Now(), job, none); !known || why != nil {
		t.Fatalf("it is submitted again: known %v, %+v", known, why)
	}
	all, err := w.Statuses(time.Now(), []message.Job{job}, none)
	if err != nil || all["j"].State != protocol.JobKilled {
		t.Fatalf("%+v, %v", all, err)
	}
}

// A job that begins and ends between a look at its files and the batch system's word
// that it is over has begun.
func TestAJobThatIsQuickerThanALook(t *testing.T) {
	now := time.Now()
	job := message.Job{ID: "j", Dir: t.TempDir(), Argv: []string{"true"}, Slot: protocol.Slot{Start: now.Add(-time.Minute), End: now.Add(time.Hour), Cores: 1}}
	w := script.NewWatch("the batch system", time.Second, time.Second)
	ask := func([]message.Job) (map[string]script.Entry, error) {
		if err := os.MkdirAll(filepath.Join(job.Dir, "run"), 0o700); err != nil {
			return nil, err
		}
		exit := fmt.Sprintf("3 0 %d %d\n0m0s 0m0s\n0m0s 0m0s\n", now.Add(-10*time.Second).UnixMilli(), now.Add(-9*time.Second).UnixMilli())
		if err := os.WriteFile(filepath.Join(job.Dir, "run", "exit"), []byte(exit), 0o600); err != nil {
			return nil, err
		}
		r := script.Report{How: script.Exited, Exit: 3, Start: now.Add(-10 * time.Second), End: now.Add(-9 * time.Second)}
		return map[string]script.Entry{"j": {Report: r}}, os.Symlink("7#0", filepath.Join(job.Dir, "run", "began"))
	}
	if err := os.MkdirAll(filepath.Join(job.Dir, "control"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := w.Statuses(now, []message.Job{job}, ask)
	if err != nil || all["j"].State != protocol.JobExited || all["j"].Exit != 3 {
		t.Fatalf("%+v, %v", all["j"], err)
	}
}

// An end that cannot be recorded is told, stays, and is recorded as soon as it can be.
func TestAnEndThatCannotBeRecordedIsTold(t *testing.T) {
	now := time.Now()
	slot := protocol.Slot{Start: now.Add(-time.Minute), End: now.Add(time.Hour), Cores: 1}
	full := message.Job{ID: "full", Dir: t.TempDir(), Slot: slot}
	other := message.Job{ID: "other", Dir: t.TempDir(), Slot: slot}
	control := filepath.Join(full.Dir, "control")
	err := errors.Join(os.Mkdir(filepath.Join(other.Dir, "control"), 0o700), os.Symlink("/sys", control)) // where nobody can make files
	if err != nil {
		t.Fatal(err)
	}
	w := script.NewWatch("the batch system", 0, 0)
	lost := script.Entry{Report: script.Report{How: script.Failed, Note: "node failed"}}
	known := map[string]script.Entry{"full": lost, "other": lost}
	for range 2 {
		all, err := w.Statuses(now, []message.Job{full, other}, func([]message.Job) (map[string]script.Entry, error) { return known, nil })
		if err != nil || all["full"].State != protocol.JobLost || all["full"].Note != "node failed" || all["other"].State != protocol.JobLost {
			t.Errorf("%+v, %v", all, err)
		}
		known = nil // the batch system forgets them
	}
	if err := errors.Join(os.Remove(control), os.Mkdir(control, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Statuses(now, []message.Job{full}, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(control, "state.json")); err != nil {
		t.Errorf("it is not recorded: %v", err)
	}
}

// Files of another machine may be seen late: a job that is just over is not lost
// because nothing of it is seen yet.
func TestAJobWhoseFilesAreSeenLate(t *testing.T) {
	now := time.Now()
	job := message.Job{ID: "j", Dir: t.TempDir(), Argv: []string{"true"}, Slot: protocol.Slot{Start: now.Add(-time.Minute), End: now.Add(time.Hour), Cores: 1}}
	if err := os.MkdirAll(filepath.Join(job.Dir, "control"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := script.NewWatch("the batch system", time.Second, time.Second)
	r := script.Report{How: script.Exited, Start: now.Add(-2 * time.Second), End: now.Add(-time.Second)}
	ask := func([]message.Job) (map[string]script.Entry, error) {
		return map[string]script.Entry{"j": {Report: r}}, nil
	}
	for _, c := range []struct {
		after time.Duration
		want  protocol.JobState
	}{{0, protocol.JobRunning}, {time.Minute, protocol.JobLost}} {
		all, err := w.Statuses(now.Add(c.after), []message.Job{job}, ask)
		if err != nil || all["j"].State != c.want {
			t.Errorf("after %s: %+v, %v; want %s", c.after, all["j"], err, c.want)
		}
	}
}

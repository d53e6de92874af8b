package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
)

// inPlaceholders lets placeholder jobs hold the slots.
func inPlaceholders(d *harness, cfg *slurm.Config) {
	cfg.Hold, cfg.Jobs = slurm.HoldJob, filepath.Join(d.state, "files")
}

// again is a job in the slot of another.
func again(d *harness, job message.Job, id, script string) message.Job {
	job.ID, job.Argv, job.Dir = id, []string{"/bin/sh", "-c", script}, d.TempDir()
	return job
}

func (d *harness) orders() string {
	d.Helper()
	list, err := filepath.Glob(d.state + "/files/slots/*/orders")
	if err != nil || len(list) != 1 {
		d.Fatalf("orders %v, %v", list, err)
	}
	return list[0]
}

// What a crash has left of an order is no order, and the next is one.
func TestAnOrderThatWasCutOff(t *testing.T) {
	d := newHarness(t, inPlaceholders)
	job := d.job(once)
	f, err := os.OpenFile(d.orders(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("run ramp-x"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.send(message.Submit{Job: job})
	if s := d.until(protocol.JobExited); s.Exit != 5 || d.begun(job) != "begun\n" {
		t.Fatalf("%+v, begun %q", s, d.begun(job))
	}
}

// A program whose script is killed ends as that did, with all that it has started, and
// the slot runs the next.
func TestAProgramThatKillsItsScript(t *testing.T) {
	d := newHarness(t, inPlaceholders)
	job := d.job(`read -r x x x script x </proc/$PPID/stat; kill -KILL $script; while :; do echo x >>alive; sleep 0.05; done`)
	d.send(message.Submit{Job: job})
	if s := d.until(protocol.JobExited); s.Exit != 137 {
		t.Fatalf("%+v", s)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(job.Dir, "work", "alive"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	next := again(d, job, "r.2", once)
	d.send(message.Submit{Job: next})
	if s := d.until(protocol.JobExited); s.Exit != 5 {
		t.Fatalf("%+v", s)
	}
	if after := size(); after != before {
		t.Errorf("what it started writes on")
	}
}

// A placeholder is lost in its slot and made again: a program that it ran was cancelled
// with it, and one that waited runs in the new.
func TestAPlaceholderThatIsMadeAgain(t *testing.T) {
	d := newHarness(t, inPlaceholders)
	job := d.jobSince("sleep 600", 10*time.Minute) // so late that one which was made before would be too late
	d.send(message.Submit{Job: job})
	d.until(protocol.JobRunning)
	script(t, d.bin, "end", "S='"+d.state+"'; touch \"$S/jobs/1/cancelled\"; kill -TERM $(cat \"$S/jobs/1/pid\")")
	if err := runProgram(filepath.Join(d.bin, "end")); err != nil {
		t.Fatal(err)
	}
	if s := d.until(protocol.JobLost); s.State != protocol.JobLost || !strings.Contains(s.Note, "not by its owner") {
		t.Fatalf("%+v", s)
	}
	d.send(message.Reserve{ID: "r", Slot: job.Slot})
	if r := d.next().(message.Reserved); !r.OK {
		t.Fatalf("refused: %+v", r.Reason)
	}
	next := again(d, job, "r.2", once)
	d.send(message.Submit{Job: next})
	if s := d.until(protocol.JobExited); s.Exit != 5 {
		t.Fatalf("%+v", s)
	}
}

// A slot that was sold before the site ran programs runs none.
func TestAPlaceholderThatKnowsOfNoPrograms(t *testing.T) {
	d := newHarness(t, inPlaceholders)
	job := d.job(once)
	if err := os.RemoveAll(filepath.Dir(d.orders())); err != nil {
		t.Fatal(err)
	}
	d.send(message.Submit{Job: job})
	r, ok := d.next().(message.JobRefused)
	if !ok || r.Reason.Code != protocol.CodeForbidden || !strings.Contains(r.Reason.Note, "before the site ran programs") {
		t.Fatalf("%+v", r)
	}
}

// What belongs to slots that are over is removed.
func TestWhatPlaceholdersWereToldIsRemoved(t *testing.T) {
	d := newHarness(t, inPlaceholders)
	job := d.job(once)
	d.send(message.Release{ID: "r"})
	if r, ok := d.next().(message.Released); !ok || !r.OK {
		t.Fatalf("%+v", r)
	}
	if list, _ := filepath.Glob(d.state + "/files/slots/*"); len(list) != 0 {
		t.Errorf("after the release there is %v", list)
	}
	d.send(message.Reserve{ID: "r-2", Slot: job.Slot})
	d.next()
	endJobs(t, d.state)
	if err := os.RemoveAll(filepath.Join(d.state, "jobs", "2")); err != nil { // its end is forgotten
		t.Fatal(err)
	}
	d.ahead.Store(int64(10 * time.Second))
	d.send(message.Reserve{ID: "r-3", Slot: job.Slot})
	d.next()
	if list, _ := filepath.Glob(d.state + "/files/slots/*"); len(list) != 1 || !strings.HasSuffix(list[0], "r-3") {
		t.Errorf("of slots that are gone there is %v", list)
	}
}

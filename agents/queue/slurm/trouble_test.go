package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
)

// harness is a driver of stand-in commands, with the messages that it delivers.
type harness struct {
	testing.TB
	state, bin string
	ahead      atomic.Int64 // of the clock, in ns
	send       func(protocol.Body)
	told       chan protocol.Body
}

func newHarness(tb testing.TB, change ...func(d *harness, cfg *slurm.Config)) *harness {
	tb.Helper()
	d := &harness{TB: tb, state: tb.TempDir(), told: make(chan protocol.Body, 1024)}
	d.bin = fakeSlurm(tb, d.state)
	cfg := fakeConfig(d.bin)
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(d.ahead.Load())) }
	for _, f := range change {
		f(d, &cfg)
	}
	driver, err := slurm.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = driver.Run(ctx, func(m protocol.Message) {
			if _, state := m.Body.(message.QueueChanged); !state {
				d.told <- m.Body
			}
		})
	}()
	tb.Cleanup(func() { cancel(); <-stopped })
	d.send = func(b protocol.Body) { driver.Send(protocol.Message{Sender: queuetest.Agent, Body: b}) }
	return d
}

// job reserves a slot that has begun, and makes a job of a script for it.
func (d *harness) job(script string) message.Job {
	d.Helper()
	return d.jobSince(script, 0)
}

// jobSince takes a slot that began some time ago.
func (d *harness) jobSince(script string, ago time.Duration) message.Job {
	d.Helper()
	now := time.Now().UTC()
	slot := protocol.Slot{Start: now.Add(-ago).Truncate(time.Second), End: now.Add(time.Hour).Truncate(time.Second), Cores: 1}
	d.send(message.Reserve{ID: "r", Slot: slot})
	if r := d.next().(message.Reserved); !r.OK {
		d.Fatalf("refused: %+v", r.Reason)
	}
	return message.Job{ID: "r.1", Reservation: "r", Slot: slot, Argv: []string{"/bin/sh", "-c", script}, Dir: d.TempDir()}
}

func (d *harness) next() protocol.Body {
	d.Helper()
	for {
		select {
		case b := <-d.told:
			if _, down := b.(message.QueueDown); !down {
				return b
			}
		case <-time.After(30 * time.Second):
			d.Fatal("nothing is told")
		}
	}
}

// until is the first status of a job in a state; other answers are skipped.
func (d *harness) until(state protocol.JobState) protocol.JobStatus {
	d.Helper()
	for {
		c, ok := d.next().(message.JobChanged)
		switch {
		case ok && c.Status.State == state:
			return c.Status
		case ok && c.Status.State.Over():
			d.Fatalf("it is %+v, want it %s", c.Status, state)
		}
	}
}

func (d *harness) begun(job message.Job) string {
	d.Helper()
	b, err := os.ReadFile(filepath.Join(job.Dir, "work", "begun"))
	if err != nil {
		d.Fatal(err)
	}
	return string(b)
}

const once = "echo begun >>begun; exit 5"

// sbatch has submitted and its answer is lost: asked again, there is one job.
func TestASubmissionWhoseAnswerIsLost(t *testing.T) {
	d := newHarness(t)
	job := d.job(once)
	change(t, d.bin, "sbatch", "$REAL \"$@\" >/dev/null; echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
	d.send(message.Submit{Job: job})
	if r, ok := d.next().(message.JobRefused); !ok || r.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("%+v, want it to be asked again", r)
	}
	d.send(message.Submit{Job: job})
	if s := d.until(protocol.JobExited); s.Exit != 5 || d.begun(job) != "begun\n" {
		t.Fatalf("%+v, begun %q", s, d.begun(job))
	}
	if jobs, _ := filepath.Glob(d.state + "/jobs/*"); len(jobs) != 1 {
		t.Errorf("Slurm has %d jobs", len(jobs))
	}
}

// Slurm has a job several times: it begins once, and how that one ended counts.
func TestASubmissionThatComesSeveralTimes(t *testing.T) {
	d := newHarness(t)
	job := d.job(once)
	change(t, d.bin, "sbatch", "$REAL \"$@\"; $REAL \"$@\" >/dev/null; $REAL \"$@\" >/dev/null")
	d.send(message.Submit{Job: job})
	if s := d.until(protocol.JobExited); s.Exit != 5 || d.begun(job) != "begun\n" {
		t.Fatalf("%+v, begun %q", s, d.begun(job))
	}
}

// A squeue that prints anything but a whole list is no reason to give a job up.
func TestJobsAreNotLostByBadOutput(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":       "true",
		"an error page": "echo '<html>502 Bad Gateway</html>'",
		"half a list":   "$REAL \"$@\" | head -c 90",
		"half a line":   "$REAL \"$@\" | sed 's/|RUN.*//'",
		"a failure":     "exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			job := d.job("while [ ! -e go ]; do sleep 0.05; done; exit 5")
			d.send(message.Submit{Job: job})
			d.until(protocol.JobRunning)
			good := filepath.Join(d.bin, "real-squeue")
			change(t, d.bin, "squeue", line)
			d.send(message.JobQuery{Job: job})
			d.ahead.Store(int64(time.Minute)) // so that Slurm is asked
			for told := time.After(time.Second); ; {
				select {
				case b := <-d.told:
					if c, ok := b.(message.JobChanged); ok && c.Status.State.Over() {
						t.Fatalf("%+v", c.Status)
					}
					continue
				case <-told:
				}
				break
			}
			if err := os.Rename(good, filepath.Join(d.bin, "squeue")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(job.Dir, "work", "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			d.send(message.JobQuery{Job: job})
			if s := d.until(protocol.JobExited); s.Exit != 5 {
				t.Fatalf("%+v", s)
			}
		})
	}
}

// Slurm forgets jobs minutes after their end: then the job's own files tell.
func TestAJobThatSlurmHasForgotten(t *testing.T) {
	d := newHarness(t)
	job := d.job(once)
	change(t, d.bin, "squeue", "$REAL \"$@\" | grep -v COMPLETED | grep -v FAILED; true")
	d.send(message.Submit{Job: job})
	if s := d.until(protocol.JobExited); s.Exit != 5 || s.Ended.IsZero() {
		t.Fatalf("%+v", s)
	}
	d.send(message.JobQuery{Job: job}) // and it is remembered for ever
	if err := os.RemoveAll(filepath.Join(job.Dir, "run")); err != nil {
		t.Fatal(err)
	}
	if s := d.until(protocol.JobExited); s.Exit != 5 {
		t.Fatalf("%+v", s)
	}
}

// A job that has begun, that Slurm does not list and that says nothing is lost, but
// not at once.
func TestAJobThatVanished(t *testing.T) {
	d := newHarness(t)
	job := d.job("sleep 600")
	d.send(message.Submit{Job: job})
	d.until(protocol.JobRunning)
	jobs, gone := filepath.Join(d.state, "jobs"), filepath.Join(d.state, "gone")
	if err := os.Rename(jobs, gone); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it still runs, and is ended with the others
		if err := os.Rename(gone, jobs); err != nil {
			t.Error(err)
		}
	})
	d.ahead.Store(int64(10 * time.Second))
	d.send(message.JobQuery{Job: job})
	for {
		c := d.next().(message.JobChanged)
		if c.Status.State.Over() {
			if d.ahead.Load() < int64(20*time.Second) {
				t.Fatalf("it was given up at once: %+v", c.Status)
			}
			if c.Status.State != protocol.JobLost || !strings.Contains(c.Status.Note, "Slurm has lost the job") {
				t.Fatalf("%+v", c.Status)
			}
			return
		}
		d.ahead.Add(int64(10 * time.Second))
		d.send(message.JobQuery{Job: job})
	}
}

// What Slurm does not take for good is not asked again; a reservation that it has
// lost is.
func TestWhatSlurmRefuses(t *testing.T) {
	for _, c := range []struct {
		says string
		code protocol.Code
	}{
		{"Requested reservation is invalid", protocol.CodeUnavailable}, // the driver knows it: it will be made again
		{"Access denied to requested reservation", protocol.CodeForbidden},
		{"Invalid user id", protocol.CodeForbidden},
		{"Unable to contact slurm controller (connect failure)", protocol.CodeUnavailable},
	} {
		d := newHarness(t)
		job := d.job(once)
		change(t, d.bin, "sbatch", "echo 'sbatch: error: Batch job submission failed: "+c.says+"' >&2; exit 1")
		d.send(message.Submit{Job: job})
		if r, ok := d.next().(message.JobRefused); !ok || r.Reason.Code != c.code {
			t.Errorf("%s: %+v, want %s", c.says, r, c.code)
		}
	}
}

// Slurm leaves a job waiting for ever that asks for a minute more than its partition
// allows: a slot that is just as long must not, nor one that has not begun.
func TestAJobAsksForNoMoreTimeThanThePartitionAllows(t *testing.T) {
	d := newHarness(t, func(d *harness, _ *slurm.Config) {
		change(t, d.bin, "scontrol", `case "$*" in *partition*) echo "`+strings.Replace(openPartition, "UNLIMITED", "01:00:00", 1)+`"; exit;; esac; exec $REAL "$@"`)
	})
	change(t, d.bin, "sbatch", `echo "$*" >"`+d.state+`/asked"; exec $REAL "$@"`)
	job := d.job(once)
	job.Slot.Start, job.Slot.End = job.Slot.Start.Add(30*time.Minute), job.Slot.End.Add(30*time.Minute)
	d.send(message.Submit{Job: job})
	d.until(protocol.JobExited)
	asked, err := os.ReadFile(filepath.Join(d.state, "asked"))
	if err != nil || !strings.Contains(string(asked), " --time=60 ") {
		t.Fatalf("sbatch %s (%v), want a limit of 60 minutes", asked, err)
	}
}

// Where memory is counted and nothing is said of it, Slurm gives a job all of a node's.
func TestAJobTakesItsShareOfTheMemory(t *testing.T) {
	const counted = "SelectTypeParameters = CR_CORE_MEMORY"
	for name, c := range map[string]struct{ config, partition, want string }{
		"memory is not counted":           {"SelectTypeParameters = CR_CORE", "", ""},
		"no default":                      {counted + "\nDefMemPerNode = UNLIMITED", "DefMemPerNode=UNLIMITED", " --mem-per-cpu=4000M "},
		"no default, and a limit":         {counted + "\nMaxMemPerCPU = 1000", "", " --mem-per-cpu=1000M "},
		"a limit of the partition":        {counted, "MaxMemPerCPU=900", " --mem-per-cpu=900M "},
		"a default":                       {counted + "\nDefMemPerCPU = 500", "", ""},
		"a default of the partition":      {counted, "DefMemPerNode=8000", ""},
		"a node's default of all Slurm's": {counted + "\nDefMemPerNode = 8000", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHarness(t, func(d *harness, _ *slurm.Config) { // the driver reads the partition at once
				change(t, d.bin, "scontrol", `case "$*" in *partition*) echo "`+openPartition+" "+c.partition+`"; exit;; *config) echo "`+c.config+`"; exit;; esac; exec $REAL "$@"`)
			})
			change(t, d.bin, "sbatch", `echo "$*" >"`+d.state+`/asked"; exec $REAL "$@"`)
			d.send(message.Submit{Job: d.job(once)})
			d.until(protocol.JobExited)
			asked, err := os.ReadFile(filepath.Join(d.state, "asked"))
			if err != nil || !strings.Contains(string(asked), c.want) || c.want == "" && strings.Contains(string(asked), "--mem") {
				t.Fatalf("sbatch %s (%v), want %q", asked, err, c.want)
			}
		})
	}
}

// A job that Slurm has refused, though it keeps a record of it, says so.
func TestAJobThatSlurmRefusesSaysSo(t *testing.T) {
	d := newHarness(t)
	job := d.job(once)
	change(t, d.bin, "squeue", `$REAL "$@" | sed "s/|\(COMPLETED\|FAILED\|RUNNING\)|\([^|]*\)|.*/|FAILED|\2|\2|256|0:00|BadConstraints|/"`)
	job.Argv = []string{"/bin/sh", "-c", "exec sleep 30"}
	d.send(message.Submit{Job: job})
	for {
		c, ok := d.next().(message.JobChanged)
		if !ok || !c.Status.State.Over() {
			continue
		}
		if c.Status.State != protocol.JobLost || !strings.HasPrefix(c.Status.Note, "Slurm refused it") {
			t.Errorf("%+v", c.Status)
		}
		return
	}
}

// A job that waits says why, and cannot be suspended: asked to, its buyer is told.
func TestWhyAJobWaits(t *testing.T) {
	d := newHarness(t)
	job := d.job(once)
	change(t, d.bin, "squeue", `$REAL "$@" | sed "s/|\(COMPLETED\|FAILED\|RUNNING\)|.*/|PENDING|N\/A|N\/A|0|0:00|ReqNodeNotAvail, UnavailableNodes:n[1-3]|x|/"`)
	job.Argv = []string{"/bin/sh", "-c", "exec sleep 30"}
	d.send(message.Submit{Job: job})
	for {
		c, ok := d.next().(message.JobChanged)
		if ok && c.Status.State == protocol.JobWaiting && c.Status.Note == "Slurm: ReqNodeNotAvail, UnavailableNodes:n[1-3]|x" {
			break
		}
	}
	d.send(message.Signal{ID: job.ID, Verb: message.SignalSuspend})
	for {
		if r, ok := d.next().(message.JobRefused); ok && r.Reason.Code == protocol.CodeForbidden && strings.Contains(r.Reason.Note, "not begun") {
			break
		}
	}
}

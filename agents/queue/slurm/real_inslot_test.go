package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue/slurm"
	"ramp/agents/queue/slurm/slurmtest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// placed is a driver whose slots are held by placeholder jobs of an ordinary account,
// and in which programs run.
type placed struct {
	*testing.T
	cluster *slurmtest.Cluster
	cfg     slurm.Config
	send    func(protocol.Body)
	told    chan protocol.Body
	stop    func()
}

func newPlaced(t *testing.T) *placed {
	t.Helper()
	c := real(t)
	root, err := os.MkdirTemp("", "jobs") // other accounts can pass through to what is theirs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o711); err != nil {
		t.Fatal(err)
	}
	p := &placed{T: t, cluster: c, cfg: config(c)}
	ordinary(&p.cfg)
	p.cfg.Hold, p.cfg.Jobs = slurm.HoldJob, root
	p.open()
	return p
}

// open opens the driver, as after a crash of the agent.
func (p *placed) open() {
	p.Helper()
	d, err := slurm.Open(p.cfg)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	told, stopped := make(chan protocol.Body, 4096), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) {
			if _, state := m.Body.(message.QueueChanged); !state {
				told <- m.Body
			}
		})
	}()
	p.told, p.stop = told, func() { cancel(); <-stopped }
	p.Cleanup(p.stop)
	p.send = func(b protocol.Body) { d.Send(protocol.Message{Sender: p.cfg.Agent, Body: b}) }
}

// next is the next answer about a job or a reservation.
func (p *placed) next(id string) protocol.Body {
	p.Helper()
	late := time.After(5 * time.Minute)
	for {
		select {
		case b := <-p.told:
			switch r := b.(type) {
			case message.JobChanged:
				if r.ID == id {
					return r
				}
			case message.JobRefused:
				if r.ID == id {
					return r
				}
			case message.Reserved:
				if r.ID == id {
					return r
				}
			}
		case <-late:
			p.Fatalf("nothing is told of %s", id)
		}
	}
}

// hold reserves a slot that begins some time from now.
func (p *placed) hold(id string, ahead, length time.Duration, cores int) protocol.Slot {
	p.Helper()
	start := time.Now().Add(ahead).UTC().Truncate(time.Second)
	slot := protocol.Slot{Start: start, End: start.Add(length), Cores: cores}
	p.send(message.Reserve{ID: id, Slot: slot})
	if r := p.next(id).(message.Reserved); !r.OK {
		p.Fatalf("%s is refused: %+v", id, r.Reason)
	}
	return slot
}

// job is a job of the account that holds the slots.
func (p *placed) job(id, reservation string, slot protocol.Slot, argv ...string) message.Job {
	p.Helper()
	dir := filepath.Join(p.cfg.Jobs, id)
	if err := os.Mkdir(dir, 0o711); err != nil {
		p.Fatal(err)
	}
	return message.Job{ID: id, Reservation: reservation, Slot: slot, Argv: argv, Dir: dir, User: "games", Env: []string{"RAMP_UNIT=1"}}
}

func (p *placed) submit(job message.Job) protocol.Body {
	p.Helper()
	p.send(message.Submit{Job: job})
	return p.next(job.ID)
}

func (p *placed) signal(job message.Job, verb message.JobSignal) {
	p.send(message.Signal{ID: job.ID, Verb: verb})
}

// until is the first status in a state, or the last.
func (p *placed) until(job message.Job, first protocol.Body, state protocol.JobState) protocol.JobStatus {
	p.Helper()
	for b := first; ; b = p.next(job.ID) {
		c, ok := b.(message.JobChanged)
		if !ok {
			p.Fatalf("%s: %+v", job.ID, b)
		}
		if c.Status.State == state || c.Status.State.Over() {
			return c.Status
		}
	}
}

func (p *placed) read(job message.Job, name string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(job.Dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.Fatal(err)
	}
	return string(b)
}

// jobs are what the cluster's queue has, with their states.
func (p *placed) jobs() string { return must(p.T, p.cluster, "squeue", "-h", "-o", "%T %u") }

// A program runs as the account that holds the slot, once, over a restart of the agent,
// and can be suspended, gone on with and killed without an operator's rights. Its slot
// stays, and runs the next, also in a hidden partition.
func TestProgramsInPlaceholdersOfAnOrdinaryAccount(t *testing.T) {
	p := newPlaced(t)
	must(t, p.cluster, "scontrol", "update", "PartitionName=batch", "Hidden=YES")
	t.Cleanup(func() { must(t, p.cluster, "scontrol", "update", "PartitionName=batch", "Hidden=NO") })
	slot := p.hold("r-1", 0, time.Hour, 20)

	first := p.job("r-1.1", "r-1", slot, "/bin/sh", "-c",
		`echo begun >>begun; id -un; echo "$RAMP_UNIT $SLURM_JOB_NUM_NODES $TZ$LC_ALL"; srun -n 2 -N 2 sleep 3600 & until [ -e ../run/used ]; do sleep 0.1; done; exit 7`)
	p.submit(first)
	p.stop()
	p.open()
	p.submit(first)
	if s := p.until(first, p.submit(first), protocol.JobExited); s.State != protocol.JobExited || s.Exit != 7 || s.Usage.Wall < 500*time.Millisecond {
		t.Fatalf("%+v: %s", s, p.read(first, "stderr"))
	}
	if got := p.read(first, "work/begun"); got != "begun\n" {
		t.Errorf("it began %d times", strings.Count(got, "\n"))
	}
	if got, want := p.read(first, "stdout"), "games\n1 2 \n"; got != want {
		t.Errorf("it says %q, want %q: %s", got, want, p.read(first, "stderr"))
	}

	second := p.job("r-1.2", "r-1", slot, "/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	p.until(second, p.submit(second), protocol.JobRunning)
	for { // Slurm ends them a moment later
		steps := strings.Fields(must(t, p.cluster, "squeue", "-h", "-s", "-o", "%i"))
		if !slices.ContainsFunc(steps, func(s string) bool { return strings.HasSuffix(s, ".0") }) {
			break // what the first started on other nodes is gone
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.signal(second, message.SignalSuspend)
	if r, ok := p.next(second.ID).(message.JobRefused); !ok || r.Reason.Code != protocol.CodeForbidden {
		t.Fatalf("suspended: %+v", r)
	}
	p.signal(second, message.SignalKill)
	if s := p.until(second, p.next(second.ID), protocol.JobKilled); s.State != protocol.JobKilled {
		t.Fatalf("killed: %+v", s)
	}

	third := p.job("r-1.3", "r-1", slot, "true")
	if s := p.until(third, p.submit(third), protocol.JobExited); !s.Success() {
		t.Fatalf("the next in the slot: %+v", s)
	}
	if got := p.jobs(); got != "RUNNING games" {
		t.Errorf("Slurm has %q, want the placeholder", got)
	}

	other := p.job("r-1.4", "r-1", slot, "true")
	other.User = "nobody"
	if r, ok := p.submit(other).(message.JobRefused); !ok || r.Reason.Code != protocol.CodeForbidden || !strings.Contains(r.Reason.Note, "run as the account games of its placeholder job, not as nobody") {
		t.Errorf("as another account: %+v", r)
	}
	p.send(message.Release{ID: "r-1"})
}

// A job that waits for its slot and is killed never begins.
func TestAProgramKilledBeforeItsPlaceholderRuns(t *testing.T) {
	p := newPlaced(t)
	slot := p.hold("r-1", time.Hour, time.Hour, 1)
	job := p.job("r-1.1", "r-1", slot, "true")
	if s := p.until(job, p.submit(job), protocol.JobWaiting); s.State != protocol.JobWaiting {
		t.Fatalf("%+v", s)
	}
	p.signal(job, message.SignalKill)
	if s := p.until(job, p.next(job.ID), protocol.JobKilled); s.State != protocol.JobKilled {
		t.Fatalf("%+v", s)
	}
	if s := p.until(job, p.submit(job), protocol.JobKilled); s.State != protocol.JobKilled {
		t.Fatalf("submitted again: %+v", s)
	}
	if got := p.jobs(); got != "PENDING games" {
		t.Errorf("Slurm has %q, want the placeholder", got)
	}
}

// A program that does not want to end is gone with its slot, and so is the placeholder,
// though no agent is there. On a machine so slow that the slot is over before the
// program runs, it takes a longer one.
func TestAProgramEndsWithItsPlaceholderWithoutTheAgent(t *testing.T) {
	p := newPlaced(t)
	for length := 6 * time.Second; ; length *= 2 {
		id := "r-" + length.String()
		slot := p.hold(id, 0, length, 1)
		job := p.job(id+".1", id, slot, "/bin/sh", "-c", `trap '' TERM; while :; do date +%s%3N >new && mv new last; sleep 0.1; done`)
		if p.runsIn(job) {
			p.endsWithout(job)
			return
		}
		if length > 10*time.Minute {
			t.Fatalf("no slot is long enough")
		}
	}
}

// runsIn submits a job, and reports whether it runs; false: its slot was over before.
func (p *placed) runsIn(job message.Job) bool {
	p.Helper()
	b := p.submit(job)
	if r, refused := b.(message.JobRefused); refused && r.Reason.Code == protocol.CodeExpired {
		return false
	}
	return p.until(job, b, protocol.JobRunning).State == protocol.JobRunning
}

func (p *placed) endsWithout(job message.Job) {
	p.Helper()
	p.stop()
	for p.jobs() != "" { // the placeholder ends by itself, or by Slurm's limit
		time.Sleep(100 * time.Millisecond)
	}
	last := strings.TrimSpace(p.read(job, "work/last"))
	if ms, err := time.ParseDuration(last + "ms"); err != nil || ms.Milliseconds() > job.Slot.End.UnixMilli() {
		p.Errorf("it was there until %s, %v; its slot ended at %d", last, err, job.Slot.End.UnixMilli())
	}
	p.open()
	if s := p.until(job, p.submit(job), protocol.JobExpired); s.State != protocol.JobExpired {
		p.Errorf("%+v", s)
	}
}

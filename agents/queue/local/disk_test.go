package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// hides is the word that makes this test a job that has a mapping as its only link to a file.
const hides = "map-file"

const diskBound = 1 << 20

// hide maps a file of five times the bound, and never ends.
func hide(path string) error {
	for range 5 {
		g, err := os.Create(path)
		if err != nil {
			return err
		}
		b := make([]byte, diskBound)
		for i := range b {
			b[i] = byte(i)
		}
		if _, err := g.Write(b); err != nil {
			return err
		}
		if _, err := unix.Mmap(int(g.Fd()), 0, len(b), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		if err := g.Close(); err != nil {
			return err
		}
	}
	return unix.Pause()
}

// bounded is a running job that may write diskBound bytes.
type bounded struct {
	ask func(body protocol.Body) protocol.Body
	job message.Job
}

func startBounded(t *testing.T, argv ...string) bounded {
	t.Helper()
	now := time.Now().UTC()
	b := bounded{begin(t, queuetest.Agent, t.TempDir()), message.Job{
		ID: "r.1", Reservation: "r", Slot: protocol.Slot{Start: now, End: now.Add(10 * time.Minute), Cores: 1},
		Dir: t.TempDir(), Argv: argv, FileSize: diskBound,
	}}
	work := filepath.Join(b.job.Dir, "work")
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.Mkdir(work, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "test"), program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := b.ask(message.Reserve{ID: "r", Slot: b.job.Slot}).(message.Reserved); !r.OK {
		t.Fatalf("%+v", r)
	}
	b.ask(message.Submit{Job: b.job})
	t.Cleanup(func() {
		b.ask(message.Signal{ID: b.job.ID, Verb: message.SignalKill})
		b.ended(t) // its files are removed next
	})
	return b
}

// status is the job's state, told in answer or because it has changed.
func (b bounded) status(t *testing.T) protocol.JobStatus {
	t.Helper()
	for {
		if q, ok := b.ask(message.JobQuery{Job: b.job}).(message.JobChanged); ok {
			return q.Status
		}
	}
}

// ended waits until the job has ended.
func (b bounded) ended(t *testing.T) protocol.JobStatus {
	t.Helper()
	for {
		if s := b.status(t); s.State.Over() {
			return s
		}
	}
}

// What a job prints and what it has deleted and only mapped counts as written.
func TestWhatAJobHidesIsMeasured(t *testing.T) {
	for name, argv := range map[string][]string{
		"printed": {"/bin/sh", "-c", "head -c 700000 /dev/zero; head -c 700000 /dev/zero >&2; exec sleep 600"},
		"open":    {"/bin/sh", "-c", "exec 8>a 9>b; rm a b; head -c 700000 /dev/zero >&8; head -c 700000 /dev/zero >&9; exec sleep 600"},
		"mapped":  {"./test", hides, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s := startBounded(t, argv...).ended(t); !strings.Contains(s.Note, "it wrote more than 1048576 bytes") {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A program that bears the mark of another's job is not that job's.
func TestAJobIsNotBlamedForAnother(t *testing.T) {
	victim := startBounded(t, "/bin/sh", "-c", "exec sleep 600")
	const overdoes = "head -c 700000 /dev/zero >&8; head -c 700000 /dev/zero >&9; "
	dir := t.TempDir()
	forger := exec.Command("/bin/sh", "-c", "exec 8>a 9>b; rm a b; "+overdoes+"touch marked; exec sleep 600")
	forger.Dir, forger.Env = dir, append(os.Environ(), queue.JobVariable+"="+victim.job.Dir)
	if err := forger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forger.Process.Kill(); _ = forger.Wait() }() // it ends with an error, as it should
	awaitFile(t, filepath.Join(dir, "marked"))
	for range 2 { // the victim is measured as often
		startBounded(t, "/bin/sh", "-c", "exec 8>a 9>b; rm a b; "+overdoes+"exec sleep 600").ended(t)
	}
	if s := victim.status(t); s.State != protocol.JobRunning {
		t.Errorf("the victim: %+v", s)
	}
}

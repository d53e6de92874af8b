package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestJobs(t *testing.T) {
	c := real(t)
	var known []string
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		if !slices.Contains(known, dir) {
			known = append(known, dir)
			if err := c.Clear(); err != nil {
				tb.Fatal(err)
			}
		}
		d, err := slurm.Open(config(c))
		if err != nil {
			tb.Fatal(err)
		}
		return d
	})
}

// open runs a driver, and returns a way to ask it and one to stop it.
func open(t *testing.T, cfg slurm.Config) (ask func(protocol.Body) protocol.Body, stop func()) {
	t.Helper()
	d, err := slurm.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	told, stopped := make(chan protocol.Body, 1024), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) {
			if _, state := m.Body.(message.QueueChanged); !state {
				told <- m.Body
			}
		})
	}()
	stop = func() { cancel(); <-stopped }
	t.Cleanup(stop)
	return func(b protocol.Body) protocol.Body {
		t.Helper()
		if b != nil {
			d.Send(protocol.Message{Sender: cfg.Agent, Body: b})
		}
		select {
		case b := <-told:
			return b
		case <-time.After(60 * time.Second):
			t.Fatal("nothing is told")
			return nil
		}
	}, stop
}

// slotted is a job in a slot of its own that has begun.
func slotted(t *testing.T, ask func(protocol.Body) protocol.Body, length time.Duration) (job message.Job) {
	t.Helper()
	now := time.Now().UTC()
	job.Slot = protocol.Slot{Start: now.Truncate(time.Second), End: now.Add(length).Truncate(time.Second), Cores: 2}
	job.ID, job.Reservation = strings.ReplaceAll(t.Name(), "/", "_")+".1", strings.ReplaceAll(t.Name(), "/", "_")
	if r := ask(message.Reserve{ID: job.Reservation, Slot: job.Slot}).(message.Reserved); !r.OK {
		t.Fatalf("refused: %+v", r.Reason)
	}
	root, err := os.MkdirTemp("", "jobs") // other accounts can pass through to what is theirs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	job.Dir = filepath.Join(root, "job")
	if err := errors.Join(os.Chmod(root, 0o711), os.Mkdir(job.Dir, 0o711)); err != nil {
		t.Fatal(err)
	}
	return job
}

// over is how a job ended; first is what the last request was answered.
func over(t *testing.T, ask func(protocol.Body) protocol.Body, first protocol.Body) protocol.JobStatus {
	t.Helper()
	for b := first; ; b = ask(nil) {
		c, ok := b.(message.JobChanged)
		if !ok {
			t.Fatalf("%+v", b)
		}
		if c.Status.State.Over() {
			return c.Status
		}
	}
}

const burn = `i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done`

// A job of another account has that account's rights, its home and no other group,
// and what it has used is measured.
func TestAJobOfAnotherAccount(t *testing.T) {
	cfg := config(real(t))
	cfg.Users = []string{"games"}
	ask, _ := open(t, cfg)
	job := slotted(t, ask, time.Minute)
	job.User = "games"
	job.Argv = []string{"/bin/sh", "-c", burn + `; id -u; id -g; id -G; echo $HOME; touch ../control/x ../x 2>/dev/null && echo wrote; ls .. 2>/dev/null; ulimit -c; kill -INT $$; echo not ended`}
	s := over(t, ask, ask(message.Submit{Job: job}))
	u, err := user.Lookup("games")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(job.Dir, "stdout"))
	if want := fmt.Sprintf("%s\n%s\n%s\n%s\n0\n", u.Uid, u.Gid, u.Gid, u.HomeDir); err != nil || string(b) != want {
		t.Errorf("it says %q, %v; want %q", b, err, want)
	}
	if s.State != protocol.JobExited || s.Exit != 130 {
		t.Errorf("it ended by SIGINT, and is told as %+v", s)
	}
	if s.Usage.CPU < 50*time.Millisecond || s.Usage.CPU > s.Usage.Wall+100*time.Millisecond || s.Usage.Share != 2*protocol.Core {
		t.Errorf("usage %+v", s.Usage)
	}
}

// An account that may not use the reservation is refused at once, for good.
func TestAnAccountThatMayNot(t *testing.T) {
	cfg := config(real(t))
	cfg.Users = []string{"root"}
	ask, _ := open(t, cfg)
	job := slotted(t, ask, time.Minute)
	job.User, job.Argv = "games", []string{"true"}
	r, ok := ask(message.Submit{Job: job}).(message.JobRefused)
	if !ok || r.Reason.Code != protocol.CodeForbidden {
		t.Fatalf("%+v", r)
	}
	t.Logf("it is told: %s", r.Reason.Note)
	job.User = "nobody-of-this-name"
	if r, ok := ask(message.Submit{Job: job}).(message.JobRefused); !ok || r.Reason.Code != protocol.CodeForbidden {
		t.Fatalf("%+v", r)
	}
}

// The script ends the job with its slot though no agent is there to do it.
func TestAJobEndsWithItsSlotWithoutTheAgent(t *testing.T) {
	cfg := config(real(t))
	ask, stop := open(t, cfg)
	job := slotted(t, ask, 20*time.Second)
	job.Argv = []string{"/bin/sh", "-c", `trap '' TERM; while :; do date +%s >next && mv next last; sleep 0.1; done`}
	for b := ask(message.Submit{Job: job}); ; b = ask(nil) {
		if c, ok := b.(message.JobChanged); !ok || c.Status.State.Over() {
			t.Fatalf("%+v", b)
		} else if c.Status.State == protocol.JobRunning {
			break
		}
	}
	stop()
	for range 900 { // nobody asks for it until then
		if _, err := os.Stat(filepath.Join(job.Dir, "run", "exit")); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	b, err := os.ReadFile(filepath.Join(job.Dir, "work", "last"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || last > job.Slot.End.Unix() {
		t.Fatalf("it was there %d s after its slot, %v", last-job.Slot.End.Unix(), err)
	}
	ask, _ = open(t, cfg)
	if s := over(t, ask, ask(message.JobQuery{Job: job})); s.State != protocol.JobExpired {
		t.Fatalf("%+v", s)
	}
}

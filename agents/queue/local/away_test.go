package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/queue/local"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// away leaves the program's session and group, by a second fork, without the
// environment that marks what belongs to a job, and does not end when it is asked.
const away = `env -i setsid /bin/sh -c '(trap "" TERM HUP; while :; do echo x >>alive; sleep 0.05; done) &' & while [ ! -s alive ]; do sleep 0.05; done`

// A job that forks away ends with its program, and with its slot; and where control
// groups can be made, also if its keeper is killed and cannot end it.
func TestAJobThatForksAwayIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		length time.Duration
		spoil  func(t *testing.T, job message.Job)
	}{
		"its program ends":      {script: away, length: time.Minute},
		"its slot ends":         {script: away + "; sleep 600", length: 4 * time.Second},
		"its keeper was killed": {script: away + "; sleep 600", length: time.Minute, spoil: killKeeper},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.spoil != nil && !local.Grouped(t.TempDir()) {
				t.Skip("no control group of version 2 can be made here")
			}
			length := c.length
			for !forksAway(t, c.script, length, c.spoil) { // the slot was over before it could begin
				length *= 2
			}
		})
	}
}

// forksAway runs a job that forks away until it is over, and holds that nothing of
// it is left; false: it never began.
func forksAway(t *testing.T, script string, length time.Duration, spoil func(t *testing.T, job message.Job)) bool {
	t.Helper()
	ask := begin(t, queuetest.Agent, t.TempDir())
	now := time.Now().UTC()
	slot := protocol.Slot{Start: now, End: now.Add(length), Cores: 1}
	if r := ask(message.Reserve{ID: "r", Slot: slot}).(message.Reserved); !r.OK {
		t.Fatalf("%+v", r)
	}
	job := message.Job{ID: "r.1", Reservation: "r", Slot: slot, Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", script}}
	body := ask(message.Submit{Job: job})
	if spoil != nil {
		spoil(t, job)
	}
	for ; ; body = ask(message.JobQuery{Job: job}) {
		if q, ok := body.(message.JobChanged); ok && q.Status.State.Over() {
			break
		}
		if !time.Now().Before(slot.End) {
			if _, refused := body.(message.JobRefused); refused {
				return false
			}
		}
	}
	if _, err := os.Stat(filepath.Join(job.Dir, "work", "alive")); err != nil {
		return false
	}
	standsStill(t, job)
	return true
}

// killKeeper waits until the job has forked away, and kills its keeper.
func killKeeper(t *testing.T, job message.Job) {
	t.Helper()
	for {
		if info, err := os.Stat(filepath.Join(job.Dir, "work", "alive")); err == nil && info.Size() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(keeperOf(t, job), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// keeperOf is the process that keeps a job.
func keeperOf(t *testing.T, job message.Job) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(job.Dir, "control", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		t.Fatalf("keeper %q: %v", b, err)
	}
	return pid
}

// standsStill: nothing of a job writes any more.
func standsStill(t *testing.T, job message.Job) {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(job.Dir, "work", "alive"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond) // several times what it needs for a line
	if now := size(); now != before {
		t.Fatalf("it runs on: %d bytes, then %d", before, now)
	}
}

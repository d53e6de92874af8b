package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// How a job ended on a full disk is written when there is room again: it is not lost.
func TestHowAJobEndedIsWrittenOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	ask := begin(t, queuetest.Agent, t.TempDir())
	now := time.Now().UTC()
	slot := protocol.Slot{Start: now, End: now.Add(time.Minute), Cores: 1}
	if r := ask(message.Reserve{ID: "r", Slot: slot}).(message.Reserved); !r.OK {
		t.Fatalf("%+v", r)
	}
	job := message.Job{
		ID: "r.1", Reservation: "r", Slot: slot, Dir: t.TempDir(),
		Argv: []string{"/bin/sh", "-c", "echo x >alive; while [ ! -e go ]; do sleep 0.01; done; exit 4"},
	}
	ask(message.Submit{Job: job})
	inWork := func(name string) string { return filepath.Join(job.Dir, "work", name) }
	awaitFile(t, inWork("alive"))
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	keeper := keeperOf(t, job)
	if err := unix.Prlimit(keeper, unix.RLIMIT_FSIZE, &unix.Rlimit{Max: unlimited.Max}, nil); err != nil {
		t.Skipf("the keeper cannot be limited: %v", err)
	}
	if err := os.WriteFile(inWork("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for len(children(t, keeper)) > 0 { // then the keeper tries to write the job's end
		time.Sleep(10 * time.Millisecond)
	}
	if q, ok := ask(message.JobQuery{Job: job}).(message.JobChanged); !ok || q.Status.State.Over() {
		t.Fatalf("got %+v, want that it is not over while that cannot be written", q)
	}
	if err := unix.Prlimit(keeper, unix.RLIMIT_FSIZE, &unlimited, nil); err != nil {
		t.Fatal(err)
	}
	for {
		q, ok := ask(message.JobQuery{Job: job}).(message.JobChanged)
		if !ok {
			t.Fatal("the job is not known")
		}
		if q.Status.State.Over() {
			if q.Status.State != protocol.JobExited || q.Status.Exit != 4 {
				t.Errorf("got %+v, want that it exited with 4", q.Status)
			}
			return
		}
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s does not come", path)
		}
	}
}

// children lists the child processes of a process.
func children(t *testing.T, pid int) (list []string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		b, _ := os.ReadFile(file) // the thread may have ended
		list = append(list, strings.Fields(string(b))...)
	}
	return list
}

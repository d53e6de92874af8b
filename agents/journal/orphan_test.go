package journal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"ramp/agents/journal"
)

// A process that was killed while it started another leaves the lock with that one
// for a moment: the next start waits for it, since who has written its name is dead.
func TestLockOfADeadProcessIsWaitedFor(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Skipf("no program to run: %v", err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strconv.Itoa(gone.Process.Pid) + " ramp"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = f.Close() }) // the orphan becomes another program
	j, err := journal.Open(path, 1<<20)
	if err != nil {
		t.Fatalf("the journal of a dead process cannot be opened: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

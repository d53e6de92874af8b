package boltfile_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ramp/bank/boltfile"
)

var plain = boltfile.Form{Name: "file", Format: "a test's file", Schema: 1}

// lockedBy is a new file's path, whose lock this test has while it says words of
// who has it.
func lockedBy(t *testing.T, words string) (path string, lock *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() }) // it may be closed
	if _, err := lock.WriteString(words); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return path, lock
}

// killed is the process ID of one that was killed, and that the system still has.
func killed(t *testing.T) int {
	t.Helper()
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = c.Wait() }) // it was killed
	return c.Process.Pid
}

// A process that was killed has the lock until it is taken apart, or leaves it for a
// moment with one that it was starting; one that takes the lock has it before it has written its name, and one that
// gives it back has it still when the name is gone. The next start waits for all of them.
func TestALockThatIsAboutToBeFreeIsWaitedFor(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Skipf("no program to run: %v", err)
	}
	dying := killed(t)
	for name, words := range map[string]string{"dead": fmt.Sprint(gone.Process.Pid, " ramp"), "dying": fmt.Sprint(dying, " ramp serve"), "nameless": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/proc/self/stat"); err != nil && name == "dying" {
				t.Skip("no /proc tells who dies")
			}
			path, lock := lockedBy(t, words)
			time.AfterFunc(50*time.Millisecond, func() { _ = lock.Close() })
			f, err := plain.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A holder without a name, as on a full disk, is not waited for for ever.
func TestALockOfNobodyInParticularIsToldInTheEnd(t *testing.T) {
	t.Parallel()
	path, _ := lockedBy(t, "")
	var busy *boltfile.InUseError
	if _, err := plain.Open(path); !errors.As(err, &busy) || busy.PID != 0 {
		t.Errorf("got %v, want that another process has it", err)
	}
}

// Who opens a file while another opens and closes it again and again always learns who
// that is, or has it.
func TestWhoHasAFileIsKnown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	stop, ended := make(chan struct{}), make(chan error)
	again := func() error {
		f, err := plain.Open(path)
		if err == nil {
			return f.Close()
		}
		if busy := (*boltfile.InUseError)(nil); errors.As(err, &busy) && busy.PID == os.Getpid() {
			return nil
		}
		return err
	}
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := again(); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 200 {
		if err := again(); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

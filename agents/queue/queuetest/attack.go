package queuetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// tree is a job's directory with inputs in many directories, and a secret of root beside
// it with the name of an input.
type tree struct{ dir, vault string }

const treeWidth = 300 // directories of a tree

// Nobody is an account that owns nothing here. It skips the test if this process cannot
// run programs as another account.
func Nobody(tb testing.TB) queue.Account {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("only root can give files away")
	}
	who, err := queue.AccountOf("nobody")
	if err != nil {
		tb.Skip(err)
	}
	return who
}

// NewTree makes a tree that other accounts can reach, whose top has a mode.
func NewTree(tb testing.TB, top string, mode os.FileMode) tree {
	tb.Helper()
	t := tree{filepath.Join(top, "job"), filepath.Join(top, "vault")}
	make := func(dir string, mode os.FileMode) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			tb.Fatal(err)
		}
	}
	fill := func(path string) {
		if err := os.WriteFile(path, []byte("root's"), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	for d := top; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // made by the test
		make(d, 0o755)
	}
	make(t.dir, 0o755)
	make(t.vault, 0o755)
	make(t.Work(), mode)
	for i := range treeWidth {
		make(t.entry(i), 0o700)
		fill(filepath.Join(t.entry(i), "secret"))
	}
	fill(t.secret())
	return t
}

// Dir is the job's directory, and Work its working directory.
func (t tree) Dir() string        { return t.dir }
func (t tree) Work() string       { return filepath.Join(t.dir, "work") }
func (t tree) entry(i int) string { return filepath.Join(t.Work(), fmt.Sprintf("d%03d", i)) }
func (t tree) secret() string     { return filepath.Join(t.vault, "secret") }

// Attack replaces the tree's directories with links to the secret's as an account, as a
// job of that account would, until the returned function is called. That one fails the
// test if the secret has changed hands.
func (t tree) Attack(tb testing.TB, who queue.Account) (stop func()) {
	tb.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends, and its account with it
		_, _, e1 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(who.GID), uintptr(who.GID), uintptr(who.GID))
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(who.UID), uintptr(who.UID), uintptr(who.UID))
		for i := 0; e1 == 0 && e2 == 0; i = (i + treeWidth - 1) % treeWidth {
			select {
			case <-quit:
				return
			default:
			}
			if syscall.Rename(t.entry(i), t.entry(i)+".gone") == nil {
				_ = syscall.Symlink(t.vault, t.entry(i))
			}
		}
	}()
	return func() {
		tb.Helper()
		close(quit)
		<-done
		info, err := os.Lstat(t.secret())
		if err != nil {
			tb.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
			tb.Fatalf("root's file belongs to uid %d now", uid)
		}
	}
}

// ownFilesOnly runs a job under another account while a process of that account, such as
// a stranger's job, exchanges the names in its directory.
func ownFilesOnly(w *worksite) {
	who := Nobody(w)
	for n := range 2 {
		t := NewTree(w, filepath.Join(w.dir, fmt.Sprint(n)), 0o700)
		job := w.job(fmt.Sprintf("j.%d", n), slotLength, "true")
		job.Dir, job.User = t.dir, who.Name
		stop := t.Attack(w, who)
		w.send(protocol.Request, message.Submit{Job: job})
		// The attack goes on until the job is over, or refused.
		if c, ok := w.next(job.ID).(message.JobChanged); ok && !c.Status.State.Over() {
			w.over(job.ID)
		}
		stop()
		w.release(job.Reservation)
	}
}

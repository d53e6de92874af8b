package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory that cannot be written is named, with what to do, by every kind of agent,
// by its commands, by what would make something in it, and by the doctor.
func TestADirectoryThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	m, err := newMarket(t.TempDir(), nil, "atlas")
	must(t, err)
	must(t, os.MkdirAll(m.path("sealed"), 0o700))
	for _, name := range []string{"user", "atlas", "bank", "sealed"} {
		must(t, os.Chmod(m.path(name), 0o500))
		t.Cleanup(func() { _ = os.Chmod(m.path(name), 0o700) })
	}
	for _, c := range []struct {
		line string
		code int
		file string
		hint string
	}{
		{"user list --dir user", 1, "user/journal.db", "an agent must be able to write its directory"},
		{"user serve --dir user", 1, "user/journal.db", "an agent must be able to write its directory"},
		{"user buy job.xml --dir user", 1, "user/journal.db", "an agent must be able to write its directory"},
		{"resource offers --dir atlas", 1, "atlas/journal.db", "an agent must be able to write its directory"},
		{"resource serve --dir atlas", 1, "atlas/journal.db", "an agent must be able to write its directory"},
		{"bank balance --dir bank", 1, "bank/ledger.db", "an agent must be able to write its directory"},
		{"bank serve --dir bank", 1, "bank/ledger.db", "an agent must be able to write its directory"},
		{"bank init --currency CPU --dir sealed/bank", 2, "sealed/bank", "choose another directory"},
		{"ca init --dir sealed/ca", 2, "sealed/ca", "choose another place"},
		{"ca issue ann --dir ca --out sealed/ann", 2, "sealed/ann", "choose another place"},
		{"swf synth --cores 64 --length 2h --out sealed/small.swf", 1, "sealed/small.swf", "choose another place"},
	} {
		out, code := m.unprivileged(t, strings.Fields(c.line)...)
		first, hint, _ := strings.Cut(strings.TrimSpace(out), "\n")
		if code != c.code || !strings.HasPrefix(first, "ramp: ") || !strings.Contains(first, c.file) || !strings.Contains(first, "permission denied") ||
			!strings.HasPrefix(hint, "  hint: "+c.hint) || strings.Contains(hint, "\n") {
			t.Errorf("ramp %s: %d: %s", c.line, code, out)
		}
	}
	out, code := m.unprivileged(t, "doctor", "--dir", "user", "--json")
	if f := finding(t, []byte(out), "directory"); code != 1 || f.State != "bad" || !strings.HasPrefix(f.Do, "the agent must be able to write there") {
		t.Errorf("the doctor: %d: %+v", code, f)
	}
}

// unprivileged runs ramp beside the market's directories as somebody whom modes bind.
func (m *market) unprivileged(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("unprivileged", args...)
	cmd.Dir = filepath.Dir(m.path("user"))
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code = cmd.ProcessState.ExitCode(); code == mayAll {
		t.Skipf("root's rights cannot be dropped: %s", b)
	}
	return string(b), code
}

// mayAll is the exit code where root stays who may do everything.
const mayAll = 126

// unprivileged becomes ramp, if this is root then without the right to pass over modes.
// It is a process of its own: a thread that ended would take with it the daemons of
// other tests that were started from it.
func unprivileged() {
	runtime.LockOSThread() // for good: the thread becomes the process
	if os.Geteuid() == 0 {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_OVERRIDE, 0, 0, 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(mayAll)
		}
	}
	path, err := exec.LookPath("ramp")
	if err == nil {
		err = syscall.Exec(path, append([]string{"ramp"}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

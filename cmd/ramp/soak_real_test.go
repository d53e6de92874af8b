package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/agents/journal"
	"ramp/agents/sim/real"
	"ramp/agents/user"
	"ramp/protocol"
)

// A soak of a few seconds finds nothing wrong, and says so of its books again;
// of damaged books it does not.
func TestASoakOfRealProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("breaks four processes for some seconds; make soak-real does it for longer")
	}
	if err := real.Available(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "ramp-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := soakReal(t, 0, "--dir", dir, "--minutes", "0.1", "--every", "1s", "--resources", "2", "--users", "1", "--seed", "3")
	if r.Settled < 1 || len(r.Faults) == 0 || len(r.Violations) > 0 {
		t.Errorf("%+v", r)
	}
	if again := soakReal(t, 0, "--compare", dir); again.Settled != r.Settled || len(again.Violations) > 0 {
		t.Errorf("%+v, at first %+v", again, r)
	}
	forget(t, filepath.Join(dir, "books", "user01", "journal.db"))
	lost := soakReal(t, 1, "--compare", dir)
	if !slices.ContainsFunc(lost.Violations, func(v string) bool { return strings.Contains(v, "has no such purchase") }) {
		t.Errorf("a user forgot what it bought, and the books agree: %q", lost.Violations)
	}
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("disks are still mounted: %v\n%s", err, mounts)
	}
}

// soakReal runs the command and reads what it prints.
func soakReal(t *testing.T, code int, args ...string) (r real.Result) {
	t.Helper()
	c := exec.Command("ramp", append([]string{"soak-real", "--json"}, args...)...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || c.ProcessState.ExitCode() != code {
		t.Fatalf("soak-real %q: %v, want exit code %d\n%s%s", args, err, code, out, &said)
	}
	must(t, json.Unmarshal(out, &r))
	return r
}

// forget removes what a user has bought from its journal, but not the contract.
func forget(t *testing.T, path string) {
	t.Helper()
	j, err := journal.Open(path, 0)
	must(t, err)
	var gone []protocol.Record
	must(t, j.Each(user.TablePurchases, func(key string, _ []byte) error {
		gone = append(gone, protocol.Record{Table: user.TablePurchases, Key: key})
		return nil
	}))
	must(t, errors.Join(j.Append(gone), j.Close()))
}

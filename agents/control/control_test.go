package control_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/agents/control"
)

// The socket of a directory whose path is long is below the temporary directory, where
// everybody may make one: it is believed if it is this account's own.
func TestASocketOfAnotherAccountIsNotBelieved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	path := control.SocketPath(dir)
	if filepath.Dir(path) != os.Getenv("TMPDIR") {
		t.Fatalf("the socket is %s", path)
	}
	if control.DaemonListens(dir) {
		t.Error("a daemon listens, and there is none")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !control.DaemonListens(dir) {
		t.Error("this account's own is not believed")
	}
	if err := os.Lchown(path, 4711, -1); err != nil {
		t.Skipf("another account's cannot be made: %v", err)
	}
	if control.DaemonListens(dir) {
		t.Error("another account's is believed")
	}
}

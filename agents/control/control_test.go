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

// The daemon of a directory with a long path is found through a short link to it, and the
// other way round.
func TestALinkToADirectoryHasItsSocket(t *testing.T) {
	base := t.TempDir()
	dir, link := filepath.Join(base, strings.Repeat("long/", 30)), filepath.Join(base, "short")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if a, b := control.SocketPath(dir), control.SocketPath(link); a != b {
		t.Errorf("the socket is %s, through a link %s", a, b)
	}
}

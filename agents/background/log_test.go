package background_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ramp/agents/background"
)

// A log stays within its bound, with one older log beside it, and standard error follows.
func TestALogIsBounded(t *testing.T) {
	errs, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Dup3(errs, 2, 0) }()
	path := filepath.Join(t.TempDir(), background.LogName)
	l, err := background.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range 11 {
		if n, err := l.Write(line); err != nil || n != len(line) {
			t.Fatal(n, err)
		}
	}
	_, _ = os.Stderr.WriteString("a crash\n")
	for name, most := range map[string]int64{path: 4<<20 + 100, path + ".1": 4 << 20} {
		if info, err := os.Stat(name); err != nil || info.Size() > most || info.Size() < 1<<20 {
			t.Errorf("%s: %v, %v; want at most %d bytes", name, info, err, most)
		}
	}
	if b, _ := os.ReadFile(path); !bytes.HasSuffix(b, []byte("a crash\n")) {
		t.Error("standard error does not go to the log")
	}
}

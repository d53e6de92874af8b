package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ramp/cmd/ramp/command"
)

// A pipe that nobody writes to is left when the command is interrupted.
func TestAnInterruptEndsTheReadingOfAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, words := range []string{"rfql show", "user init --dir " + t.TempDir() + " --join", "acl parse"} {
		root := command.Root()
		root.SetArgs(append(strings.Fields(words), pipe))
		err := root.ExecuteContext(ctx)
		if err == nil || !strings.Contains(err.Error(), "pipe: interrupted, it was not read to its end") {
			t.Errorf("%s: %v", words, err)
		}
	}
	if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		_ = w.Close() // who still waits for a writer reads the end
	}
}

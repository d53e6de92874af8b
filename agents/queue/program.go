package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"ramp/protocol"
)

// Reasons why a program's answer is unusable, besides its own errors.
var (
	ErrTimeLimit = errors.New("exceeded its time limit")
	ErrTooMuch   = errors.New("printed too much output")
)

// Program runs a batch system's programs: with their arguments unchanged and never
// through a shell, in their own process group, with a time limit and bounded output.
type Program struct {
	Prefix []string            // before every program, such as sudo -n; may be empty
	Env    []string            // all of their environment
	Dir    string              // working directory; empty: the agent's own
	As     *syscall.Credential // the account; nil: the agent's own
	Limit  time.Duration
	Most   int // bytes of output
}

// maxWords bounds the saved part of a program's error output, in bytes.
const maxWords = 4096

// ExitError means that a program ran and failed.
type ExitError struct {
	Name  string
	Code  int    // exit code; -1: ended by a signal
	Words string // the begin of its stderr, as one line
}

func (e *ExitError) Error() string {
	if e.Words == "" {
		return fmt.Sprintf("%s: exit code %d, with nothing on stderr", e.Name, e.Code)
	}
	return fmt.Sprintf("%s: exit code %d: %s", e.Name, e.Code, e.Words)
}

// Run runs a program with an input and returns its output. Errors: an ExitError, ErrTimeLimit or
// ErrTooMuch (the program and its children are killed), or a program that cannot be started.
func (p Program) Run(input []byte, name string, args ...string) ([]byte, error) {
	out, _, err := p.Listen(input, name, args...)
	return out, err
}

// Listen is Run, and returns the begin of stderr too, as one line.
func (p Program) Listen(input []byte, name string, args ...string) (printed []byte, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.Limit)
	defer cancel()
	argv := append(append(append([]string{}, p.Prefix...), name), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out, words := &bounded{most: p.Most, full: cancel}, &bounded{most: maxWords}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, words
	cmd.Env, cmd.Dir = append([]string{}, p.Env...), p.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.As}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for a child that keeps the pipe open
	err = cmd.Run()
	return out.b.Bytes(), OneLine(words.b.Bytes()), p.failure(ctx, name, out, words, err)
}

// failure describes a failed run in one line.
func (p Program) failure(ctx context.Context, name string, out, words *bounded, err error) error {
	var exit *exec.ExitError
	switch {
	case out.over:
		return fmt.Errorf("%s: %w: more than %d bytes", name, ErrTooMuch, p.Most)
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%s: it exited but left a process that keeps its output open", name)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w of %s", name, ErrTimeLimit, p.Limit)
	case errors.As(err, &exit):
		return &ExitError{Name: name, Code: exit.ExitCode(), Words: OneLine(words.b.Bytes())}
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: not installed, or not in PATH", slices.Concat(p.Prefix, []string{name})[0])
	case err != nil && !errors.Is(err, syscall.EPIPE): // a program need not read its input
		return fmt.Errorf("%s: %s", name, OneLine([]byte(err.Error())))
	}
	return nil
}

// bounded keeps the first bytes of a stream. If full is set, one byte more ends
// the program; otherwise it drops the rest.
type bounded struct {
	b    bytes.Buffer
	most int
	full func()
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	room := min(w.most-w.b.Len(), len(p))
	w.b.Write(p[:room])
	if room == len(p) || w.full == nil {
		return len(p), nil
	}
	w.over = true
	w.full()
	return room, ErrTooMuch
}

// maxLine bounds the result of OneLine, in bytes.
const maxLine = 300

// OneLine shortens a program's output to one line of printable text, for logs and reasons.
func OneLine(b []byte) string {
	b = b[:min(len(b), 4*maxLine)]
	s := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, string(b))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxLine {
		return s
	}
	return strings.ToValidUTF8(s[:maxLine], "") + "…"
}

// Unavailable is the reason why a request to a batch system failed.
func Unavailable(err error) *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: OneLine([]byte(err.Error()))}
}

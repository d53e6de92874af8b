package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"ramp/protocol"
)

// What makes a program's answer unusable, beside what it says itself.
var (
	ErrTimeLimit = errors.New("over its time limit")
	ErrTooMuch   = errors.New("prints more than is read")
)

// Program is how a batch system's programs are run: with the arguments as they
// are and never through a shell, in a process group of their own, for a limited
// time, and with so much output read. What they say is data, and no more.
type Program struct {
	Prefix []string            // before every program, such as sudo -n; may be empty
	Env    []string            // all of their environment
	Dir    string              // to run in; the agent's own if empty
	As     *syscall.Credential // as whom; nil: the agent's own account
	Limit  time.Duration
	Most   int // bytes of output
}

// maxWords bounds what is kept of a program's complaints, in bytes.
const maxWords = 4096

// ExitError is a program that ran and failed.
type ExitError struct {
	Name  string
	Code  int    // of its exit; -1: ended by a signal
	Words string // the first that it said on stderr, as one line
}

func (e *ExitError) Error() string {
	if e.Words == "" {
		return fmt.Sprintf("%s: exit code %d and not a word on stderr", e.Name, e.Code)
	}
	return fmt.Sprintf("%s: exit code %d: %s", e.Name, e.Code, e.Words)
}

// Run runs a program with an input and returns its output. Errors: an ExitError,
// ErrTimeLimit or ErrTooMuch (the program and its children are killed), or a
// program that cannot be started.
func (p Program) Run(input []byte, name string, args ...string) ([]byte, error) {
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
	err := cmd.Run()
	return out.b.Bytes(), p.failure(ctx, name, out, words, err)
}

// failure says in one line what went wrong.
func (p Program) failure(ctx context.Context, name string, out, words *bounded, err error) error {
	var exit *exec.ExitError
	switch {
	case out.over:
		return fmt.Errorf("%s: %w: more than %d bytes", name, ErrTooMuch, p.Most)
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%s: it ended, but left a process behind that has its output open", name)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w of %s", name, ErrTimeLimit, p.Limit)
	case errors.As(err, &exit):
		return &ExitError{Name: name, Code: exit.ExitCode(), Words: OneLine(words.b.Bytes())}
	case err != nil && !errors.Is(err, syscall.EPIPE): // a program need not read its input
		return fmt.Errorf("%s: %s", name, OneLine([]byte(err.Error())))
	}
	return nil
}

// bounded keeps the first bytes of a stream. If full is set, one byte more ends
// the program; otherwise the rest is dropped.
type bounded struct {
	b    bytes.Buffer
	most int
	full func()
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	room := min(w.most-w.b.Len(), len(p))
	w.b.Write(p[:room])
	if room == len(p) {
		return len(p), nil
	}
	if w.full == nil {
		return len(p), nil
	}
	w.over = true
	w.full()
	return room, ErrTooMuch
}

// maxLine is how long OneLine gets, in bytes.
const maxLine = 300

// OneLine is what a program said as one short line of printable text, for logs
// and reasons.
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

// Unavailable is the reason of a request that a batch system could not be asked.
func Unavailable(err error) *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: OneLine([]byte(err.Error()))}
}

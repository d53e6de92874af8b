// Package exit has the exit codes of the program, and errors that carry one together with a hint on
// what to do. The control API sends both, so a command ends with the code that its daemon chose.
package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"ramp/protocol"
)

// Exit codes, as --help and docs/CLI.md list them.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2 // bad input or usage
	Nothing     = 3 // nothing bought: no match, or approval needed
	Refused     = 4 // refused by policy or funds
	Unreachable = 5
	Disk        = 6 // the disk failed under the journal or the ledger
)

const Help = `Exit codes: 0 done, 1 failed, 2 bad input or usage, 3 nothing bought (no match, or
approval needed), 4 refused by policy or funds, 5 unreachable, 6 disk failed.`

// Exit codes of commands that end with a program's own code, after sysexits.h, so that the
// two differ.
const (
	RunUsage       = 64
	RunData        = 65 // the request's document is wrong
	RunNothing     = 69
	RunFailed      = 70 // also an interrupt
	RunDisk        = 74
	RunUnreachable = 75
	RunRefused     = 77
	RunFunds       = 79 // sysexits.h has none for this
)

const RunHelp = `Exit codes: those of the program (124 ended with its slot, 125 never ran or lost, 137 killed), or
64 bad usage, 65 bad request, 69 nothing bought, 70 failed or interrupted, 74 disk failed,
75 unreachable, 77 refused by policy, 79 not enough money.`

// Error is an error with an exit code and a hint on what to do.
type Error struct {
	Code  int
	Err   error
	Hint  string
	InRun int // of a command that ends with a program's code; 0: the one that Code stands for
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Fail makes an error with an exit code. A hint may be empty.
func Fail(code int, hint, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Of is the exit code of an error, and its hint.
func Of(err error) (code int, hint string) {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Code, e.Hint
	case errors.Is(err, protocol.ErrDisk):
		return Disk, "check the disk first; the agent audits its records when it starts again"
	}
	return Failed, ""
}

// InRun is the exit code of a command that ends with a program's code, if it would otherwise
// end with err and code.
func InRun(err error, code int) int {
	var e *Error
	if errors.As(err, &e) && e.InRun != 0 {
		return e.InRun
	}
	codes := map[int]int{Done: Done, Usage: RunUsage, Nothing: RunNothing, Refused: RunRefused, Unreachable: RunUnreachable, Disk: RunDisk}
	if run, ok := codes[code]; ok {
		return run
	}
	return RunFailed
}

// WithCode adds an exit code to err, unless it has one.
func WithCode(code int, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: code, Err: err}
}

// Silent ends the program with a code and no message.
func Silent(code int) error { return &Error{Code: code, Err: ErrSilent} }

// OfProgram ends the program with the code of a buyer's program; zero is no error.
func OfProgram(code int) error {
	if code == Done {
		return nil
	}
	return &Error{Code: code, InRun: code, Err: ErrSilent}
}

var ErrSilent = errors.New("")

// PlaceHint helps with a file or directory that cannot be created or read.
func PlaceHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "choose another place, or let this account read and write there"
	case errors.Is(err, syscall.ENOTDIR):
		return "a file is where a directory is needed: give another path"
	case errors.Is(err, syscall.EISDIR):
		return "a directory is where a file is needed: give another path"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path: a relative one begins where the command runs"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full: free some space, and repeat the command"
	}
	return ""
}

// OneLine joins an error's lines: libraries list their attempts one below another.
func OneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* ")); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

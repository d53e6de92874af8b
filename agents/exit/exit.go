// Package exit has the exit codes of the program, and errors that carry one together
// with a hint on what to do. The control API sends both, so a command ends with the code
// that its daemon chose.
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

// Error is an error with an exit code and a hint on what to do.
type Error struct {
	Code int
	Err  error
	Hint string
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
		return Disk, "check the disk first; what the agent has is audited when it is opened again"
	}
	return Failed, ""
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

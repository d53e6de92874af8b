package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"ramp/rfql"
)

// Exit codes; they stand in --help and in docs/CLI.md.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // bad input or usage
	exitNothing     = 3 // nothing bought: no match, or approval needed
	exitRefused     = 4 // refused by policy or funds
	exitUnreachable = 5
)

const exitHelp = `Exit codes: 0 done, 1 failed, 2 bad input or usage, 3 nothing bought (no match, or
approval needed), 4 refused by policy or funds, 5 unreachable.`

// exitError is an error with the code that the program ends with, and what to do.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// fail makes an error with an exit code. A hint may be empty.
func fail(code int, hint, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...), hint: hint}
}

// withCode gives err an exit code, unless it has one.
func withCode(code int, err error) error {
	var e *exitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &exitError{code: code, err: err}
}

// silent ends with a code after everything was said already.
func silent(code int) error { return &exitError{code: code, err: errSilent} }

var errSilent = errors.New("")

// report prints an error once, with its hint, and returns the exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	code, hint, said := exitFailed, "", []string{oneLine(err.Error())}
	var e *exitError
	if errors.As(err, &e) {
		code, hint = e.code, e.hint
	}
	var faults rfql.Faults
	if errors.As(err, &faults) {
		said = strings.Split(strings.TrimSpace(err.Error()), "\n") // each has a line of its own
	}
	if errors.Is(err, context.Canceled) && code == exitFailed {
		fmt.Fprintln(w, "ramp: interrupted")
		return exitFailed
	}
	if errors.Is(err, errSilent) {
		return code
	}
	if hint == "" {
		hint = placeHint(err)
	}
	for _, line := range said {
		fmt.Fprintln(w, "ramp: "+line)
	}
	if hint != "" {
		fmt.Fprintln(w, "  hint: "+hint)
	}
	return code
}

// placeHint helps where a file or directory cannot be made or read.
func placeHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "choose another place, or let this account read and write there"
	case errors.Is(err, syscall.ENOTDIR):
		return "there is a file where a directory is wanted: give another path"
	case errors.Is(err, syscall.EISDIR):
		return "there is a directory where a file is wanted: give another path"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full: make room, and give the command again"
	}
	return ""
}

// oneLine is an error's text in one line: libraries list what they tried below another.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* ")); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

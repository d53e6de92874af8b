package acl

import (
	"bytes"
	"fmt"
)

// SyntaxError is a fault of a message in string form.
type SyntaxError struct {
	Offset int    // bytes before the fault
	Line   int    // from 1
	Reason string // what was found and what is allowed
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Reason)
}

func (p *parser) fail(at int, format string, args ...any) error {
	at = min(at, len(p.src))
	line := 1 + bytes.Count(p.src[:at], []byte{'\n'})
	return &SyntaxError{Offset: at, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// clip shortens foreign input for an error message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

package cli

import (
	"errors"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
)

// Shown is standard output. It remembers the first failed write, since most printing code
// ignores the error.
type Shown struct {
	W   io.Writer
	mu  sync.Mutex
	err error
}

func (s *Shown) Write(b []byte) (int, error) {
	n, err := s.W.Write(b)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

func (s *Shown) screenSize() (width, rows int) { return terminalSize(s.W) }

func (s *Shown) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Ended is the result of a command that returned err: a success whose output could not be
// written is a failure.
func (s *Shown) Ended(err error) error {
	if lost := s.failure(); lost != nil && (err == nil || errors.Is(err, exit.ErrSilent)) {
		return exit.Fail(exit.Failed, "", "%w", lost)
	}
	return err
}

// WasShown reports whether all output of a command was written.
func WasShown(c *cobra.Command) bool {
	s, ok := Stdout(c).(*Shown)
	return !ok || s.failure() == nil
}

package command

import (
	"errors"
	"io"
	"sync"

	"github.com/spf13/cobra"
)

// shown is standard output. It remembers the first failure to write there: most of what
// is printed is printed without a look at that.
type shown struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (s *shown) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

func (s *shown) screenSize() (width, rows int) { return terminalSize(s.w) }

func (s *shown) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ended is how a command ends that ended with err: nobody has seen what it printed, if
// that could not be written.
func (s *shown) ended(err error) error {
	if lost := s.failure(); lost != nil && (err == nil || errors.Is(err, errSilent)) {
		return fail(exitFailed, "", "%w", lost)
	}
	return err
}

// wasShown reports whether all that a command has printed was written.
func wasShown(c *cobra.Command) bool {
	s, ok := stdout(c).(*shown)
	return !ok || s.failure() == nil
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol/message"
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
		s.err = cmp.Or(s.err, err)
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

// ShortIDs are IDs of purchases as people read them: short, and unique at the agent. They stay
// whole if the agent does not answer.
func ShortIDs(agent *control.Client, ids ...string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), WarnTime) // an interrupt's message has them too
	defer cancel()
	var f control.IDsFound
	if err := control.Find.Ask(ctx, agent, control.FindCall{Shorten: ids}, &f); err != nil || len(f.Short) != len(ids) {
		return ids
	}
	return f.Short
}

// ShortID is ShortIDs of one.
func ShortID(agent *control.Client, id string) string { return ShortIDs(agent, id)[0] }

// Shortened is a purchase for people, with short IDs.
func Shortened(agent *control.Client, p message.Purchase) message.Purchase {
	ids := []string{p.ID, p.Replaces}
	for _, u := range p.Units {
		ids = append(ids, u.Again)
	}
	short := ShortIDs(agent, ids...)
	p.ID, p.Replaces, p.Units = short[0], short[1], slices.Clone(p.Units)
	for i := range p.Units {
		p.Units[i].Again = short[2+i]
	}
	return p
}

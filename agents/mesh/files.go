package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/protocol"
)

// protocolFiles is for bytes that are no messages: what travels with jobs.
const protocolFiles libp2pprotocol.ID = "/ramp/files/1"

// filesBuffer is what is read ahead of an exchange.
const filesBuffer = 64 << 10

// Stream is an exchange of bytes with one agent, whose credential was verified. It
// belongs to one goroutine, but for Close.
type Stream struct {
	agent protocol.AgentID
	s     network.Stream
	r     *bufio.Reader
}

// Agent is who is on the other side.
func (s *Stream) Agent() protocol.AgentID { return s.agent }

// Read reads what the other side has written.
func (s *Stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// Write writes to the other side.
func (s *Stream) Write(b []byte) (int, error) { return s.s.Write(b) }

// SetDeadline bounds reading and writing; zero: no bound.
func (s *Stream) SetDeadline(t time.Time) error { return s.s.SetDeadline(t) }

// CloseWrite says that no more is written.
func (s *Stream) CloseWrite() error { return s.s.CloseWrite() }

// Close ends the exchange at once; what was not read is lost.
func (s *Stream) Close() error { return s.s.Reset() }

// OpenFiles opens an exchange with an agent, within DialTimeout and HelloTimeout.
// Errors: ErrUnknownAgent, or nobody answers there.
func (m *Mesh) OpenFiles(ctx context.Context, to protocol.AgentID) (*Stream, error) {
	known := m.book.agent(to)
	if known == nil {
		return nil, fmt.Errorf("files of %s: %w", to.Name(), ErrUnknownAgent)
	}
	s, w, err := m.dial(ctx, known.peer, protocolFiles, DialTimeout)
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", to.Name(), err)
	}
	if err := w.Flush(); err != nil {
		_ = s.Reset() // the error before it says more
		return nil, fmt.Errorf("files of %s: %w", to.Name(), err)
	}
	r := bufio.NewReaderSize(s, filesBuffer)
	c, err := m.readCard(s, r)
	if err == nil && c.agent != to {
		err = fmt.Errorf("%s answers there", c.agent)
	}
	if err != nil {
		_ = s.Reset()
		return nil, fmt.Errorf("files of %s: %w", to.Name(), silence(err))
	}
	return &Stream{agent: to, s: s, r: r}, nil
}

// silence says of a time that ran out what it was for.
func silence(err error) error {
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("it does not answer within %s", HelloTimeout)
	}
	return err
}

// serveFiles hands an exchange that another agent opened to Config.Files.
func (m *Mesh) serveFiles(s network.Stream) error {
	c, r, err := m.greet(s)
	if err != nil {
		return err
	}
	if err := s.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return m.cfg.Files(&Stream{agent: c.agent, s: s, r: r})
}

package mesh

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/protocol"
)

// protocolFiles carries raw bytes: the files of jobs.
const protocolFiles libp2pprotocol.ID = "/ramp/files/1"

// filesBuffer is the size of a read buffer.
const filesBuffer = 64 << 10

// Stream is an exchange of bytes with one agent, whose credential was verified. It
// belongs to one goroutine, except for Close.
type Stream struct {
	agent protocol.AgentID
	s     network.Stream
	r     *bufio.Reader
	most  int64
	waste func() error // charges the agent, if it opened the exchange
}

// Agent is the agent on the other side.
func (s *Stream) Agent() protocol.AgentID { return s.agent }

// Read reads what the other side has written.
func (s *Stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// Write writes to the other side.
func (s *Stream) Write(b []byte) (int, error) { return s.s.Write(b) }

// SetDeadline bounds reading and writing; zero: no bound.
func (s *Stream) SetDeadline(t time.Time) error { return s.s.SetDeadline(t) }

// CloseWrite signals the end of what this side writes.
func (s *Stream) CloseWrite() error { return s.s.CloseWrite() }

// Most is how many bytes the connection carries in each direction over a relay; 0: any number.
func (s *Stream) Most() int64 { return s.most }

// Refused charges the agent for a request that was refused, as for an exchange that it
// opens, and fails when it has made too many.
func (s *Stream) Refused() error { return s.waste() }

// Close ends the exchange at once and discards unread bytes.
func (s *Stream) Close() error { return s.s.Reset() }

// OpenFiles opens an exchange within DialTimeout and HelloTimeout, if need be after a moment to
// punch a direct path. Errors: ErrUnknownAgent without an address, ErrUnreached if none answers.
func (m *Mesh) OpenFiles(ctx context.Context, to protocol.AgentID) (*Stream, error) {
	s, err := m.ep.openFiles(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", to.Name(), err)
	}
	return s, nil
}

func (e *endpoint) openFiles(ctx context.Context, to protocol.AgentID) (*Stream, error) {
	known := e.contacts.ofAgent(to)
	if known == nil {
		return nil, ErrUnknownAgent
	}
	s, w, most, err := e.dialDirect(ctx, known.peer)
	if err != nil {
		e.cfg.Log.Debug("no files of an agent", "agent", to, "err", err)
		return nil, cmp.Or(ctx.Err(), ErrUnreached)
	}
	r := bufio.NewReaderSize(s, filesBuffer)
	if err = w.Flush(); err == nil {
		known, err = e.readCard(s, r)
	}
	if err == nil && known.agent != to {
		err = fmt.Errorf("%s answers at its address", known.agent)
	}
	if err != nil {
		_ = s.Reset() // err says more
		return nil, silence(err)
	}
	return &Stream{agent: to, s: s, r: r, most: most}, nil
}

// dialDirect opens a stream for files, over a direct connection if there can be one.
func (e *endpoint) dialDirect(ctx context.Context, id peer.ID) (network.Stream, *bufio.Writer, int64, error) {
	dialing, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	if err := e.connect(dialing, peer.AddrInfo{ID: id}); err != nil {
		return nil, nil, 0, err
	}
	most := e.direct(ctx, id)
	s, w, err := e.dial(ctx, id, protocolFiles, DialTimeout)
	return s, w, most, err
}

// silence explains a deadline that has passed.
func silence(err error) error {
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("it does not answer within %s", HelloTimeout)
	}
	return err
}

// serveFiles passes an exchange that another agent opened to Config.Files.
func (e *endpoint) serveFiles(s network.Stream) error {
	c, r, err := e.greet(s)
	if err != nil {
		return err
	}
	if err := s.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return e.cfg.Files(&Stream{agent: c.agent, s: s, r: r, waste: func() error { return e.chargeOpen(c, "refused requests and streams") }})
}

package mesh

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/agents/framing"
)

// outbound is a stream that this agent opened and writes frames to.
type outbound struct {
	stream network.Stream
	w      *bufio.Writer
	until  time.Time     // the write deadline
	lost   chan struct{} // closed when the other side is gone
}

// openOutbound opens a long-lived stream. Its first frames leave together with the
// card, before the other side has shown its own: the peer's agent was verified when
// its contact was made, and the channel proves the peer.
func (e *endpoint) openOutbound(ctx context.Context, id peer.ID, via libp2pprotocol.ID) (*outbound, error) {
	s, w, err := e.dial(ctx, id, via, DialTimeout)
	if err != nil {
		return nil, err
	}
	o := &outbound{stream: s, w: w, lost: make(chan struct{})}
	if !e.life.start(func(context.Context) { e.watch(o) }) {
		_ = s.Reset()
		return nil, ErrClosed
	}
	return o, nil
}

// watch verifies the card of the other side, then waits for the stream to end: the
// other side writes nothing else to it.
func (e *endpoint) watch(o *outbound) {
	defer close(o.lost)
	r := bufio.NewReaderSize(o.stream, smallBuffer)
	if _, err := e.readCard(o.stream, r); err != nil {
		_ = o.stream.Reset()
		return
	}
	if _, err := r.ReadByte(); err == nil {
		_ = o.stream.Reset()
		e.drop(o.stream.Conn().RemotePeer(), fmt.Errorf("it writes to a stream that carries messages to it only: %w", errMalformed))
	}
}

// write writes frames and flushes once. It keeps a deadline with half its time left,
// since setting one costs as much as a small write.
func (o *outbound) write(frames [][]byte) error {
	if now := time.Now(); o.until.Sub(now) < WriteTimeout/2 {
		o.until = now.Add(WriteTimeout)
		if err := o.stream.SetWriteDeadline(o.until); err != nil {
			return err
		}
	}
	for _, b := range frames {
		if err := framing.Write(o.w, b); err != nil {
			return err
		}
	}
	return o.w.Flush()
}

// close ends the stream after the frames already written, and ends its watcher.
func (o *outbound) close() {
	if err := o.stream.CloseWrite(); err != nil {
		_ = o.stream.Reset()
	}
	_ = o.stream.CloseRead() // nothing else is expected from the other side
}

package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// outbound is a stream that this agent opened and writes frames to.
type outbound struct {
	stream network.Stream
	w      *bufio.Writer
	until  time.Time     // when writing must be done
	lost   chan struct{} // closed when the other side is gone
}

// connect dials a peer at the addresses that its agent told, if need be.
func (m *Mesh) connect(ctx context.Context, info peer.AddrInfo) error {
	if !m.gate.open(info.ID) {
		return fmt.Errorf("peer %s: %w", info.ID, errCutOff)
	}
	if m.book.connected(info.ID) {
		return nil
	}
	if c := m.book.peer(info.ID); c != nil {
		c.mu.Lock()
		info.Addrs = append(info.Addrs[:len(info.Addrs):len(info.Addrs)], c.addrs...)
		c.mu.Unlock()
	}
	// The library would refuse for five seconds to try again; the links and the
	// anchors have their own, shorter back-off.
	if s, ok := m.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(info.ID)
	}
	return m.host.Connect(ctx, info)
}

// dial opens a stream to a peer within a limit and shows this agent's card on it.
func (m *Mesh) dial(ctx context.Context, id peer.ID, via libp2pprotocol.ID, limit time.Duration) (network.Stream, *bufio.Writer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := m.connect(ctx, peer.AddrInfo{ID: id}); err != nil {
		return nil, nil, err
	}
	s, err := m.host.NewStream(network.WithNoDial(ctx, "connected"), id, via)
	if err != nil {
		return nil, nil, err
	}
	w := bufio.NewWriterSize(s, bufferSize)
	if err := writeFrame(w, m.card().encode()); err != nil {
		_ = s.Reset()
		return nil, nil, err
	}
	return s, w, nil
}

func (m *Mesh) card() card {
	return card{chain: m.cfg.Credential.ChainDER(), addrs: m.reachable()}
}

// openStream opens a kept stream. Its first frames go with the card, before the
// other side has shown its own: that the peer is the agent meant was verified
// when its contact was made, and the channel proves the peer.
func (m *Mesh) openStream(ctx context.Context, id peer.ID, via libp2pprotocol.ID) (*outbound, error) {
	s, w, err := m.dial(ctx, id, via, DialTimeout)
	if err != nil {
		return nil, err
	}
	o := &outbound{stream: s, w: w, lost: make(chan struct{})}
	if !m.start(func(context.Context) { m.watch(o) }) {
		_ = s.Reset()
		return nil, ErrClosed
	}
	return o, nil
}

// watch verifies the card of the other side, and then waits for the stream to
// end: nothing else comes back on it.
func (m *Mesh) watch(o *outbound) {
	defer close(o.lost)
	r := bufio.NewReaderSize(o.stream, smallBuffer)
	if _, err := m.readCard(o.stream, r); err != nil {
		_ = o.stream.Reset()
		return
	}
	if _, err := r.ReadByte(); err == nil {
		_ = o.stream.Reset()
		m.drop(o.stream.Conn().RemotePeer(), fmt.Errorf("it writes on a stream that is not its own: %w", errMalformed))
	}
}

// write writes frames and flushes once. A deadline of which half is left will do:
// setting one costs as much as a small write.
func (o *outbound) write(frames [][]byte) error {
	if now := time.Now(); o.until.Sub(now) < WriteTimeout/2 {
		o.until = now.Add(WriteTimeout)
		if err := o.stream.SetWriteDeadline(o.until); err != nil {
			return err
		}
	}
	for _, b := range frames {
		if err := writeFrame(o.w, b); err != nil {
			return err
		}
	}
	return o.w.Flush()
}

func (o *outbound) isLost() bool {
	select {
	case <-o.lost:
		return true
	default:
		return false
	}
}

// close ends the stream after what was written, and its watcher.
func (o *outbound) close() {
	if err := o.stream.CloseWrite(); err != nil {
		_ = o.stream.Reset()
	}
	_ = o.stream.CloseRead() // what the other side still says is of no interest
}

// readCard reads the card with which every stream begins and verifies it. A peer
// whose card does not name its key is cut off.
func (m *Mesh) readCard(s network.Stream, r *bufio.Reader) (*contact, error) {
	if err := s.SetReadDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return nil, err
	}
	b, err := takeFrame(r, MaxCard)
	if err != nil {
		if errors.Is(err, errBound) {
			m.drop(s.Conn().RemotePeer(), err)
		}
		return nil, fmt.Errorf("card: %w", err)
	}
	c, err := m.meetCard(s.Conn().RemotePeer(), b)
	if err != nil {
		m.drop(s.Conn().RemotePeer(), err)
		return nil, err
	}
	return c, s.SetReadDeadline(time.Time{})
}

func (m *Mesh) meetCard(id peer.ID, b []byte) (*contact, error) {
	shown, err := decodeCard(b)
	if err != nil {
		return nil, err
	}
	now := m.cfg.Now()
	agent, err := shown.verify(m.cfg.Trust, id, now)
	if err != nil {
		return nil, err
	}
	return m.book.meet(agent, id, shown, now)
}

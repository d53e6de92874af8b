package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/protocol"
	"ramp/protocol/message"
)

// kindTag marks verified agents for the connection manager; a bank is worth more.
const (
	kindTag    = "ramp-kind"
	agentWorth = 10
	bankWorth  = 50
)

// isFault reports whether a peer, and not the network, is to blame.
func isFault(err error) bool {
	return errors.Is(err, errBound) || errors.Is(err, errMalformed) || errors.Is(err, errMismatch)
}

// meet exchanges cards and presences with a peer: afterwards each has verified
// the other, and the role has heard the other's current presence, first-hand. If
// this agent's own first presence was made meanwhile, they meet once more.
func (m *Mesh) meet(ctx context.Context, id peer.ID) error {
	told := m.presence.Load()
	if err := m.meetOnce(ctx, id, told); err != nil {
		return fmt.Errorf("meet %s: %w", id, err)
	}
	if c, now := m.book.peer(id), m.presence.Load(); now != nil && c != nil && !c.wasTold() {
		return m.meetOnce(ctx, id, now)
	}
	return nil
}

func (m *Mesh) meetOnce(ctx context.Context, id peer.ID, own *[]byte) error {
	s, w, err := m.dial(ctx, id, protocolPresence, MeetTimeout)
	if err != nil {
		return err
	}
	if err := m.exchange(s, w, own); err != nil {
		_ = s.Reset()
		return err
	}
	return s.Close()
}

// exchange is the meeting as the side that opened the stream has it.
func (m *Mesh) exchange(s network.Stream, w *bufio.Writer, own *[]byte) error {
	if err := s.SetWriteDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return err
	}
	if err := writePresence(w, own); err != nil {
		return err
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	c, err := m.readCard(s, r)
	if err != nil {
		return err
	}
	if err := m.readPresence(c, s, r); err != nil {
		return err
	}
	c.meets(own != nil)
	return nil
}

// serveMeeting is the meeting as the other side has it.
func (m *Mesh) serveMeeting(s network.Stream) error {
	c, r, err := m.greet(s)
	if err != nil {
		return err
	}
	// Loaded after the contact was made: a first presence that is made after this
	// finds the contact, and is told to it by introduceSelf.
	own := m.presence.Load()
	if err := writePresence(bufio.NewWriterSize(s, smallBuffer), own); err != nil {
		return err
	}
	if err := m.readPresence(c, s, r); err != nil {
		return err
	}
	c.meets(own != nil)
	return s.Close()
}

// writePresence writes this agent's presence, or nothing if it has none yet.
func writePresence(w *bufio.Writer, own *[]byte) error {
	var b []byte
	if own != nil {
		b = *own
	}
	if err := writeFrame(w, b); err != nil {
		return err
	}
	return w.Flush()
}

func (m *Mesh) readPresence(c *contact, s network.Stream, r *bufio.Reader) error {
	if err := s.SetReadDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return err
	}
	b, err := takeFrame(r, protocol.MaxMessage)
	if err != nil {
		if isFault(err) {
			m.drop(c.peer, err)
		}
		return fmt.Errorf("presence of %s: %w", c.agent, err)
	}
	if len(b) == 0 {
		return nil
	}
	return m.hear(c, b)
}

// hear takes a presence to the contact and to the role. Anything else in its
// place is a fault.
func (m *Mesh) hear(c *contact, b []byte) error {
	now := m.cfg.Now()
	m.counters.messagesIn.Add(1)
	m.counters.bytesIn.Add(uint64(len(b)))
	msg, err := m.cfg.Codec.Open(b, c.agent, now)
	p, ok := msg.Body.(message.Presence)
	if err == nil && !ok {
		err = fmt.Errorf("%s in place of a presence: %w", kindOf(msg), errMalformed)
	}
	if err != nil {
		m.counters.refused.Add(1)
		if c.blame(now, m.cfg.Limits) {
			m.drop(c.peer, err)
		}
		return err
	}
	c.hear(p, now)
	worth := agentWorth
	if p.Agent == protocol.KindBank {
		worth = bankWorth
	}
	m.host.ConnManager().TagPeer(c.peer, kindTag, worth)
	return m.deliver(msg)
}

// introduceSelf tells this agent's first presence, which gossip would bring to
// nobody while the mesh of the topic is not built, to those who were met before.
func (m *Mesh) introduceSelf(ctx context.Context) {
	m.tell(ctx, func(c *contact) bool { return !c.wasTold() })
}

// tell tells this agent's presence to the connected agents that are wanted.
func (m *Mesh) tell(ctx context.Context, wanted func(c *contact) bool) {
	var ids []peer.ID
	for _, id := range m.host.Network().Peers() {
		if c := m.book.peer(id); c != nil && wanted(c) {
			ids = append(ids, id)
		}
	}
	m.each(ctx, ids, func(ctx context.Context, id peer.ID) {
		if err := m.meetOnce(ctx, id, m.presence.Load()); err != nil {
			m.cfg.Log.Debug("presence not told", "peer", id, "err", err)
		}
	})
}

// each calls f for every peer, parallelMeetings at a time, and waits.
func (m *Mesh) each(ctx context.Context, ids []peer.ID, f func(ctx context.Context, id peer.ID)) {
	var all crew
	free := make(chan struct{}, parallelMeetings)
	for _, id := range ids {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.run(func() { f(ctx, id); <-free })
	}
	all.disband()
}

// watchCredentials drops connections whose peer shows no credential in time, or
// whose credential has ended or been revoked since.
func (m *Mesh) watchCredentials(ctx context.Context) {
	for pause(ctx, watchPeriod) {
		m.recheckConnected()
	}
}

// Recheck verifies the credentials of all known agents once more. Those that do
// not count any more are cut off and forgotten, so that what others pass on of
// theirs is refused too. It is to be called when Trust has changed.
func (m *Mesh) Recheck() {
	m.recheckConnected()
	m.book.retain(func(c *contact) bool { return m.counts(c) == nil })
}

func (m *Mesh) recheckConnected() {
	for _, conn := range m.host.Network().Conns() {
		if err := m.stillValid(conn); errors.Is(err, errSilent) {
			m.dropFor(conn.RemotePeer(), Silence, err)
		} else if err != nil {
			m.drop(conn.RemotePeer(), err)
		}
	}
}

func (m *Mesh) stillValid(conn network.Conn) error {
	c := m.book.peer(conn.RemotePeer())
	if c == nil {
		if m.cfg.Now().Sub(conn.Stat().Opened) > HelloTimeout {
			return fmt.Errorf("no credential within %s: %w", HelloTimeout, errSilent)
		}
		return nil
	}
	return m.counts(c)
}

// counts reports why a contact's credential does not count now.
func (m *Mesh) counts(c *contact) error {
	c.mu.Lock()
	chain := c.chain
	c.mu.Unlock()
	_, err := card{chain: chain}.verify(m.cfg.Trust, c.peer, m.cfg.Now())
	return err
}

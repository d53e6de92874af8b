package mesh

import (
	"bufio"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"ramp/protocol"
	"ramp/protocol/message"
)

// greet reads the other side's card, checks its allowance of streams, and
// answers with this agent's card.
func (m *Mesh) greet(s network.Stream) (*contact, *bufio.Reader, error) {
	r := bufio.NewReaderSize(s, bufferSize)
	c, err := m.readCard(s, r)
	if err != nil {
		return nil, nil, err
	}
	if !c.admitStream(m.cfg.Now(), m.cfg.Limits) {
		err := fmt.Errorf("more than %g streams, or %g per second: %w", m.cfg.Limits.Streams.Burst, m.cfg.Limits.Streams.PerSecond, errBound)
		m.drop(c.peer, err)
		return nil, nil, err
	}
	if err := s.SetWriteDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return nil, nil, err
	}
	w := bufio.NewWriterSize(s, smallBuffer)
	if err := writeFrame(w, m.card().encode()); err != nil {
		return nil, nil, err
	}
	return c, r, w.Flush()
}

// serveMessages reads one peer's messages until the stream ends.
func (m *Mesh) serveMessages(s network.Stream) error {
	return m.serveFrames(s, func(c *contact, b []byte) error {
		if !c.admit(len(b), m.cfg.Now(), m.cfg.Limits) {
			err := fmt.Errorf("%s sends more than %g messages or %g bytes per second: %w",
				c.agent, m.cfg.Limits.Messages.PerSecond, m.cfg.Limits.Bytes.PerSecond, errBound)
			m.drop(c.peer, err)
			return err
		}
		return m.receive(c, b)
	})
}

// serveFrames hands on the frames of one kept stream, of which a contact has one
// at a time.
func (m *Mesh) serveFrames(s network.Stream, hand func(c *contact, b []byte) error) error {
	c, r, err := m.greet(s)
	if err != nil {
		return err
	}
	defer c.replace(s)()
	for {
		b, err := readFrame(s, r, protocol.MaxMessage)
		if err != nil {
			if isFault(err) {
				m.drop(c.peer, err)
			}
			return err
		}
		if err := hand(c, b); err != nil {
			return err
		}
	}
}

// receive opens a direct message and delivers it. Opening verifies signatures;
// it happens here, in the goroutine of this peer's stream, so that peers are
// parallel and each keeps its order.
func (m *Mesh) receive(c *contact, b []byte) error {
	m.counters.messagesIn.Add(1)
	m.counters.bytesIn.Add(uint64(len(b)))
	now := m.cfg.Now()
	msg, err := m.cfg.Codec.Open(b, c.agent, now)
	if err != nil {
		return m.misunderstand(c, err)
	}
	if p, ok := msg.Body.(message.Presence); ok {
		c.hear(p, now)
	}
	return m.deliver(msg)
}

// misunderstand answers what could not be opened, if the error knows an answer;
// too many of them cut the peer off.
func (m *Mesh) misunderstand(c *contact, why error) error {
	m.counters.refused.Add(1)
	m.cfg.Log.Debug("message not understood", "from", c.agent, "err", why)
	if c.blame(m.cfg.Now(), m.cfg.Limits) {
		err := fmt.Errorf("%s sends what cannot be understood: %w", c.agent, why)
		m.drop(c.peer, err)
		return err
	}
	var answerable interface {
		Answer(self protocol.AgentID) (protocol.Message, bool)
	}
	if !errors.As(why, &answerable) {
		return nil
	}
	if answer, ok := answerable.Answer(m.self); ok {
		// Nobody here waits for it, so that it cannot be sent concerns nobody.
		_ = m.post(c.agent, protocolACL, &outgoing{message: answer})
	}
	return nil
}

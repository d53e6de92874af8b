package mesh

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"

	"ramp/protocol"
)

// SendBare queues a frame for an agent, over a kept stream of its own like those
// of messages, but as it is. The other side hands it to its Config.Bare: what
// the same exchange costs without messages, as the baseline of measurements.
func (m *Mesh) SendBare(to protocol.AgentID, frame []byte) error {
	if len(frame) > protocol.MaxMessage {
		return fmt.Errorf("frame of %d bytes, at most %d: %w", len(frame), protocol.MaxMessage, errBound)
	}
	return m.post(to, protocolBare, &outgoing{frame: frame})
}

// serveBare hands on one peer's bare frames.
func (m *Mesh) serveBare(s network.Stream) error {
	return m.serveFrames(s, func(c *contact, b []byte) error {
		m.counters.messagesIn.Add(1)
		m.counters.bytesIn.Add(uint64(len(b)))
		m.cfg.Bare(c.agent, b)
		return nil
	})
}

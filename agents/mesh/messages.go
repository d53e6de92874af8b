package mesh

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"

	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/message"
)

// serveMessages reads one peer's messages until the stream ends.
func (ls *links) serveMessages(s network.Stream) error {
	return ls.serveFrames(s, func(c *contact, b []byte) error {
		if limits := ls.ep.cfg.Limits; !c.admit(len(b), ls.ep.cfg.Now(), limits) {
			err := fmt.Errorf("%s sends more than %g messages or %g bytes per second: %w",
				c.agent, limits.Messages.PerSecond, limits.Bytes.PerSecond, errBound)
			ls.ep.drop(c.peer, err)
			return err
		}
		return ls.receive(c, b)
	})
}

// serveFrames passes on the frames of one long-lived stream. A contact has one such
// stream per protocol at a time.
func (ls *links) serveFrames(s network.Stream, handle func(c *contact, b []byte) error) error {
	c, r, err := ls.ep.greet(s)
	if err != nil {
		return err
	}
	defer c.replace(s)()
	for {
		b, err := framing.Read(s, r, protocol.MaxMessage)
		if err != nil {
			if isFault(err) {
				ls.ep.drop(c.peer, err)
			}
			return err
		}
		if err := handle(c, b); err != nil {
			return err
		}
	}
}

// receive opens a direct message and delivers it. Opening verifies signatures, so it runs in the
// goroutine of this peer's stream: peers proceed in parallel, and each keeps its order.
func (ls *links) receive(c *contact, b []byte) error {
	msg, err := ls.delivery.open(b, c.agent)
	if err != nil {
		return ls.misunderstand(c, err)
	}
	if p, ok := msg.Body.(message.Presence); ok {
		c.hear(p, ls.ep.cfg.Now())
	}
	return ls.delivery.deliver(msg)
}

// misunderstand answers a message that could not be opened, if the error supplies an
// answer. A peer that sends too many of them is cut off.
func (ls *links) misunderstand(c *contact, why error) error {
	ls.ep.counters.refused.Add(1)
	ls.ep.cfg.Log.Debug("message not understood", "from", c.agent, "err", why)
	if !c.charge(&c.faults, ls.ep.cfg.Now(), ls.ep.cfg.Limits.Faults) {
		err := fmt.Errorf("%s sends messages that cannot be understood: %w", c.agent, why)
		ls.ep.drop(c.peer, err)
		return err
	}
	var answerable interface {
		Answer(self protocol.AgentID) (protocol.Message, bool)
	}
	if !errors.As(why, &answerable) {
		return nil
	}
	if answer, ok := answerable.Answer(ls.ep.cfg.Credential.ID); ok {
		_ = ls.post(c.agent, protocolACL, &outgoing{message: answer}) // nobody here waits for it
	}
	return nil
}

// SendBare queues a frame for an agent on a long-lived stream of its own, unchanged.
// The other side passes it to its Config.Bare. Measurements use it as the baseline:
// the cost of the same exchange without messages.
func (m *Mesh) SendBare(to protocol.AgentID, frame []byte) error {
	if len(frame) > protocol.MaxMessage {
		return fmt.Errorf("frame of %d bytes, at most %d: %w", len(frame), protocol.MaxMessage, errBound)
	}
	return m.links.post(to, protocolBare, &outgoing{frame: frame})
}

// serveBare passes on one peer's bare frames.
func (ls *links) serveBare(s network.Stream) error {
	return ls.serveFrames(s, func(c *contact, b []byte) error {
		ls.ep.counters.countIn(b)
		ls.ep.cfg.Bare(c.agent, b)
		return nil
	})
}

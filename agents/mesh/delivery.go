package mesh

import (
	"context"
	"fmt"
	"sync/atomic"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// delivery owns the codec and the way to the role: messages that arrived, and
// failures of those that could not be sent.
type delivery struct {
	cfg      Config
	counters *counters
	failures chan *undelivered
}

// outgoing is a message on its way to one receiver, encoded by its writer, or a bare frame.
type outgoing struct {
	message protocol.Message
	frame   []byte                 // a bare frame, sent unchanged
	shared  func() ([]byte, error) // the message as encoded for another of its receivers; nil if it has only one
}

// undelivered is a message that did not reach an agent.
type undelivered struct {
	message protocol.Message
	to      protocol.AgentID
}

// encode returns the bytes to send.
func (d *delivery) encode(o *outgoing) ([]byte, error) {
	if o.frame != nil {
		return o.frame, nil
	}
	if o.shared != nil {
		if b, err := o.shared(); err == nil {
			return codec.Readdress(b, o.message.Receivers[0])
		}
	}
	return d.cfg.Codec.Encode(o.message)
}

// open counts, parses and verifies bytes from a sender.
func (d *delivery) open(b []byte, sender protocol.AgentID) (protocol.Message, error) {
	d.counters.countIn(b)
	return d.cfg.Codec.Open(b, sender, d.cfg.Now())
}

// deliver passes a message to the role; it returns an error once the role has stopped.
func (d *delivery) deliver(msg protocol.Message) error {
	if err := d.cfg.Deliver(msg); err != nil {
		return fmt.Errorf("the role takes no more messages: %w", err)
	}
	return nil
}

// fail reports to the role that a message did not reach an agent. It never blocks,
// since the role itself may be the caller.
func (d *delivery) fail(o *outgoing, to protocol.AgentID, why error) {
	d.counters.undelivered.Add(1)
	d.cfg.Log.Debug("message not delivered", "to", to, "conversation", o.message.Conversation, "err", why)
	if o.message.Body == nil {
		return // nobody waits for a bare frame
	}
	select {
	case d.failures <- &undelivered{o.message, to}:
	default:
		d.counters.dropped.Add(1)
	}
}

func (d *delivery) reportFailures(ctx context.Context) {
	for {
		select {
		case u := <-d.failures:
			if d.deliver(u.failure(d.cfg.Credential.ID)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (u *undelivered) failure(self protocol.AgentID) protocol.Message {
	return protocol.Message{
		Performative: protocol.Failure, Sender: protocol.LocalMesh, Receivers: []protocol.AgentID{self},
		Protocol: u.message.Protocol, Conversation: u.message.Conversation,
		ReplyWith: u.message.ReplyWith, InReplyTo: u.message.ReplyWith,
		Body: message.Undeliverable{To: u.to},
	}
}

// counters owns the counts behind Counters.
type counters struct {
	messagesIn, messagesOut, bytesIn, bytesOut atomic.Uint64
	undelivered, refused, cutOff, dropped      atomic.Uint64
}

func (c *counters) countIn(b []byte) {
	c.messagesIn.Add(1)
	c.bytesIn.Add(uint64(len(b)))
}

func (c *counters) countOut(b []byte) {
	c.messagesOut.Add(1)
	c.bytesOut.Add(uint64(len(b)))
}

// Counters are totals since the mesh started. Bytes are those of encoded messages,
// without framing and encryption. A message to several receivers counts once for each.
type Counters struct {
	MessagesIn, MessagesOut uint64
	BytesIn, BytesOut       uint64
	Undelivered             uint64 // pairs of message and receiver
	Refused                 uint64 // messages that could not be opened
	CutOff                  uint64 // peers, counted each time
	Dropped                 uint64 // gossip and failures that found a queue full
}

// Counters returns the counts so far.
func (m *Mesh) Counters() Counters {
	c := m.counters
	return Counters{
		MessagesIn: c.messagesIn.Load(), MessagesOut: c.messagesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Undelivered: c.undelivered.Load(), Refused: c.refused.Load(),
		CutOff: c.cutOff.Load(), Dropped: c.dropped.Load(),
	}
}

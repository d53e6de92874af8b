package mesh

import (
	"sync/atomic"

	"ramp/protocol"
	"ramp/protocol/message"
)

// outgoing is a message on its way to one receiver, encoded by its writer, or a
// bare frame.
type outgoing struct {
	message protocol.Message
	frame   []byte // bare: as it is
}

// encode is what goes over the wire.
func (m *Mesh) encode(o *outgoing) ([]byte, error) {
	if o.frame != nil {
		return o.frame, nil
	}
	return m.cfg.Codec.Encode(o.message)
}

// undelivered is a message that did not reach an agent.
type undelivered struct {
	message protocol.Message
	to      protocol.AgentID
}

// fail tells the role that a message did not reach to. It never blocks: the role
// itself may be the caller.
func (m *Mesh) fail(o *outgoing, to protocol.AgentID, why error) {
	m.counters.undelivered.Add(1)
	m.cfg.Log.Debug("message not delivered", "to", to, "conversation", o.message.Conversation, "err", why)
	if o.message.Body == nil {
		return // a bare frame: nobody waits for it
	}
	select {
	case m.failures <- undelivered{o.message, to}:
	default:
		m.counters.dropped.Add(1)
	}
}

func failure(self protocol.AgentID, u undelivered) protocol.Message {
	return protocol.Message{
		Performative: protocol.Failure, Sender: protocol.LocalMesh, Receivers: []protocol.AgentID{self},
		Protocol: u.message.Protocol, Conversation: u.message.Conversation,
		ReplyWith: u.message.ReplyWith, InReplyTo: u.message.ReplyWith,
		Body: message.Undeliverable{To: u.to},
	}
}

// counters are what Counters reads.
type counters struct {
	messagesIn, messagesOut, bytesIn, bytesOut atomic.Uint64
	undelivered, refused, cutOff, dropped      atomic.Uint64
}

// Counters count since the mesh began. Bytes are of encoded messages, without
// framing and encryption; a message to several receivers counts for each.
type Counters struct {
	MessagesIn, MessagesOut uint64
	BytesIn, BytesOut       uint64
	Undelivered             uint64 // of messages and receivers
	Refused                 uint64 // messages that could not be opened
	CutOff                  uint64 // peers, each time
	Dropped                 uint64 // gossip or failures for which there was no room
}

// Counters returns the counts so far.
func (m *Mesh) Counters() Counters {
	c := &m.counters
	return Counters{
		MessagesIn: c.messagesIn.Load(), MessagesOut: c.messagesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Undelivered: c.undelivered.Load(), Refused: c.refused.Load(),
		CutOff: c.cutOff.Load(), Dropped: c.dropped.Load(),
	}
}

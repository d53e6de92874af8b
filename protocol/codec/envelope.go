package codec

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// Fields of an envelope that are bodies, now or later.
const (
	firstBody = 16
	lastBody  = 63
)

// sendable returns the row of a message's body. It refuses a message that other agents
// must not see, or whose body has no row.
func sendable(m protocol.Message) (row, error) {
	for _, a := range m.Receivers {
		if a.Local() && a != protocol.Everyone {
			return row{}, fmt.Errorf("%s to %s: %w", subject(m), a, ErrLocal)
		}
	}
	if m.Body == nil {
		return bare, nil
	}
	if r, ok := bodies.byType[reflect.TypeOf(m.Body)]; ok {
		return r, nil
	}
	if strings.HasPrefix(m.Body.Kind(), "local-") {
		return row{}, fmt.Errorf("%s: %w", subject(m), ErrLocal)
	}
	return row{}, fmt.Errorf("%s: a body of type %T cannot be sent", subject(m), m.Body)
}

// message copies everything but the sender. A reader stops at a fault and leaves in m
// the fields before it.
func (c *coder) message(m *protocol.Message, e *wire.Envelope) {
	c.head(m, e)
	values(c, "receivers", &m.Receivers, &e.Receivers, protocol.MaxReceivers, (*coder).receiver)
	if len(e.Receivers) == 0 {
		c.malformed("no receiver")
	}
	if c.writes || c.err == nil {
		c.body(m, e)
	}
	if c.err == nil && !c.row.allows(m.Performative, m.Protocol) {
		c.malformed("not allowed with performative %.32q and protocol %.32q", m.Performative, m.Protocol)
	}
}

// head copies the fields before the receivers.
func (c *coder) head(m *protocol.Message, e *wire.Envelope) {
	text(c, &m.Performative, &e.Performative) // checkAllowed checks both
	same(c, &m.Protocol, &e.Protocol)
	c.name("conversation", &m.Conversation, &e.Conversation, protocol.MaxConversation)
	if m.Conversation == "" && m.Protocol != protocol.ProtocolPresence {
		c.malformed("conversation is missing")
	}
	c.name("reply-with", &m.ReplyWith, &e.ReplyWith, protocol.MaxName)
	c.name("in-reply-to", &m.InReplyTo, &e.InReplyTo, protocol.MaxName)
	c.instant("reply-by", &m.ReplyBy, &e.ReplyBy)
}

func (c *coder) body(m *protocol.Message, e *wire.Envelope) {
	switch {
	case c.writes && m.Body != nil:
		c.row.put(e, c.row.write(c, m.Body))
	case c.writes:
	case e.Body != nil:
		var body any
		c.row, body = bodies.bodyOf(e)
		m.Body = c.row.read(c, body)
	default:
		c.row = bare
		if hasUnknownBody(e.ProtoReflect().GetUnknown()) {
			c.malformed("a body of an unknown kind")
		}
	}
}

func (c *coder) receiver(m *protocol.AgentID, w *string) {
	text(c, m, w)
	if *m != protocol.Everyone {
		c.agent("receiver", m, w)
	}
}

// hasUnknownBody reports whether the fields that the decoder did not know include a body.
func hasUnknownBody(b []byte) bool {
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 || num >= firstBody && num <= lastBody {
			return true
		}
		b = b[n:]
	}
	return false
}

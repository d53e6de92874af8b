package command

import (
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
)

// observe counts, logs and traces a message that arrived or left.
func (n *node) observe(at time.Time, in bool, m protocol.Message) {
	n.meters.see(at, in, m)
	n.decide(in, m)
	if n.journal != nil {
		n.trace(at, in, m)
	}
}

// quotePrefix begins the conversation-ids of quotes. They buy nothing and leave
// nothing behind, so they are not traced.
const quotePrefix = "quote-"

// traces reports whether a message belongs in the journal's trace. Of auctions
// only the buyer keeps one: a seller hears hundreds per second.
func (n *node) traces(m protocol.Message) bool {
	switch {
	case m.Conversation == "", m.Protocol == protocol.ProtocolPresence, localOnly(m):
		return false
	case strings.HasPrefix(m.Conversation, quotePrefix):
		return false
	}
	return n.cfg.Resource == nil || m.Protocol != protocol.ProtocolAuction
}

// trace keeps what was said with other agents in a conversation.
func (n *node) trace(at time.Time, in bool, m protocol.Message) {
	if !n.traces(m) {
		return
	}
	b, err := codec.EncodeTrace(m)
	if err != nil {
		n.log.Error("cannot trace a message", "conversation", m.Conversation, "err", err)
		return
	}
	dir := "out"
	if in {
		dir = "in"
	}
	n.journal.Trace(at, dir, m.Conversation, b)
}

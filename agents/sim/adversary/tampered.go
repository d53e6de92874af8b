package adversary

import (
	"time"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// tampered is an honest role whose messages are intercepted.
type tampered struct {
	agents.Role
	own *identity.Credential
	// hear, if set, gets messages from other agents before the role. It reports whether the
	// role receives the message, and returns an Output of its own.
	hear func(now time.Time, m protocol.Message) (bool, protocol.Output)
	// say, if set, replaces each message that the role sends to other agents.
	say func(now time.Time, m protocol.Message) []protocol.Message
}

// modified tampers with a role, unless tamper is nil.
func modified(role agents.Role, own *identity.Credential, tamper func(*tampered)) agents.Role {
	if tamper == nil {
		return role
	}
	t := &tampered{Role: role, own: own}
	tamper(t)
	return t
}

// Receive passes a message to the role, unless hear keeps it.
func (b *tampered) Receive(now time.Time, m protocol.Message) protocol.Output {
	if b.hear != nil && !m.Sender.Local() {
		if pass, out := b.hear(now, m); !pass {
			out.Send = encodable(b.own, now, out.Send)
			return out
		}
	}
	return b.tamper(now, b.Role.Receive(now, m))
}

// Wake wakes the role.
func (b *tampered) Wake(now time.Time) protocol.Output { return b.tamper(now, b.Role.Wake(now)) }

func (b *tampered) tamper(now time.Time, out protocol.Output) protocol.Output {
	if b.say != nil {
		out.Hint, out.Send = b.replace(now, out.Hint), b.replace(now, out.Send)
	}
	return out
}

func (b *tampered) replace(now time.Time, list []protocol.Message) (said []protocol.Message) {
	for _, m := range list {
		if to := m.Receivers[0]; to.Local() && to != protocol.Everyone {
			said = append(said, m)
		} else {
			said = append(said, encodable(b.own, now, b.say(now, m))...)
		}
	}
	return said
}

// encodable drops the messages that the codec refuses to encode; it would refuse to decode
// them, too.
func encodable(own *identity.Credential, now time.Time, list []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range list {
		if _, err := codec.Seal(own, m, now); err == nil {
			kept = append(kept, m)
		}
	}
	return kept
}

func one(m protocol.Message) []protocol.Message { return []protocol.Message{m} }

// answer is an Output of one answer.
func answer(self protocol.AgentID, m protocol.Message, p protocol.Performative, body protocol.Body) protocol.Output {
	return protocol.Output{Send: one(m.Reply(self, p, body))}
}

// say makes a message that begins a conversation, or pretends to continue one.
func say(to protocol.AgentID, p protocol.Performative, token, conversation string, body protocol.Body) protocol.Message {
	return protocol.Message{Performative: p, Receivers: []protocol.AgentID{to}, Protocol: token, Conversation: conversation, Body: body}
}

package adversary

import (
	"time"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// bent is a role with a bend in it.
type bent struct {
	agents.Role
	own *identity.Credential
	// hear, if set, takes what another agent sent before the role does: it reports
	// whether the role hears of it, and what is said instead.
	hear func(now time.Time, m protocol.Message) (bool, protocol.Output)
	// say, if set, changes what the role says to other agents, message by message.
	say func(now time.Time, m protocol.Message) []protocol.Message
}

// Receive lets the role hear what it is to hear.
func (b *bent) Receive(now time.Time, m protocol.Message) protocol.Output {
	if b.hear != nil && !m.Sender.Local() {
		if pass, out := b.hear(now, m); !pass {
			out.Send = utterable(b.own, now, out.Send)
			return out
		}
	}
	return b.bend(now, b.Role.Receive(now, m))
}

// Wake lets the role do what is due.
func (b *bent) Wake(now time.Time) protocol.Output { return b.bend(now, b.Role.Wake(now)) }

func (b *bent) bend(now time.Time, out protocol.Output) protocol.Output {
	if b.say == nil {
		return out
	}
	var said []protocol.Message
	for _, m := range out.Send {
		if to := m.Receivers[0]; to.Local() && to != protocol.Everyone {
			said = append(said, m)
		} else {
			said = append(said, utterable(b.own, now, b.say(now, m))...)
		}
	}
	out.Send = said
	return out
}

// utterable are the messages that can be put into bytes: the codec does not let a
// host say everything, and what it refuses to write it would refuse to read.
func utterable(own *identity.Credential, now time.Time, list []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range list {
		if _, err := codec.Seal(own, m, now); err == nil {
			kept = append(kept, m)
		}
	}
	return kept
}

// one is a message alone.
func one(m protocol.Message) []protocol.Message { return []protocol.Message{m} }

// answer is an Output of one answer.
func answer(self protocol.AgentID, m protocol.Message, p protocol.Performative, body protocol.Body) protocol.Output {
	return protocol.Output{Send: one(m.Reply(self, p, body))}
}

// say is a message that begins a thread, or pretends to go on with one.
func say(to protocol.AgentID, p protocol.Performative, token, conversation string, body protocol.Body) protocol.Message {
	return protocol.Message{Performative: p, Receivers: []protocol.AgentID{to}, Protocol: token, Conversation: conversation, Body: body}
}

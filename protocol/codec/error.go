package codec

import (
	"fmt"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Error is why a message was not opened.
type Error struct {
	// Envelope is the readable part of the message, without a body. Its Sender is
	// the authenticated one.
	Envelope protocol.Message
	// Code is malformed, mismatch (a part contradicts another), signature (a
	// signature, its chain or its signer is not valid) or limit.
	Code protocol.Code
	// Err names the fault and the allowed values; it wraps the sentinels of
	// packages contract and identity.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("from %s: %.32q: %v", e.Envelope.Sender, string(e.Envelope.Performative), e.Err)
}

// Unwrap is e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Answer is the reply to the sender, if any: refuse or failure for an invalid signature, otherwise
// not-understood. A message with an unreadable envelope gets no reply. Nor does one that itself
// reports or ends something, since two agents could reply to each other endlessly.
func (e *Error) Answer(self protocol.AgentID) (protocol.Message, bool) {
	act, ok := e.act()
	if !ok {
		return protocol.Message{}, false
	}
	m := e.Envelope.Reply(self, act, message.Refused(e.Code, e.Err.Error()))
	_, err := Encode(m)
	return m, err == nil
}

func (e *Error) act() (protocol.Performative, bool) {
	bad := e.Code == protocol.CodeSignature
	switch e.Envelope.Performative {
	case protocol.Request, protocol.QueryRef, protocol.AcceptProposal, protocol.CFP:
		if bad {
			return protocol.Refuse, true
		}
		return protocol.NotUnderstood, true
	case protocol.Confirm:
		if bad {
			return protocol.Failure, true
		}
		return protocol.NotUnderstood, true
	case protocol.Propose, protocol.Agree, protocol.Cancel:
		return protocol.NotUnderstood, !bad
	}
	return "", false
}

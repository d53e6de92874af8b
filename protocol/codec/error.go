package codec

import (
	"fmt"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Error says why a message was not opened.
type Error struct {
	// Envelope is what could be read of the message, without a body. Its Sender
	// is who was authenticated.
	Envelope protocol.Message
	// Code is malformed, mismatch (a part contradicts another), signature (a
	// signature, its chain or its signer does not count) or limit.
	Code protocol.Code
	// Err says what was found and what is allowed; it wraps the sentinels of
	// packages contract and identity.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("from %s: %.32q: %v", e.Envelope.Sender, string(e.Envelope.Performative), e.Err)
}

// Unwrap is e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Answer is what to say to the sender, if anything: refuse or failure with the
// code for a signature that does not count, otherwise not-understood. There is
// no answer to a message whose envelope cannot be read, or that itself reports
// or ends something: two agents would go on for ever.
func (e *Error) Answer(self protocol.AgentID) (protocol.Message, bool) {
	act, ok := e.act()
	if !ok {
		return protocol.Message{}, false
	}
	m := e.Envelope.Reply(self, act, message.Refused(e.Code, e.Err.Error()))
	r := reader{signed: unread{}}
	w, err := toWire(m)
	if err != nil {
		return protocol.Message{}, false
	}
	r.message(w)
	return m, r.err == nil
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

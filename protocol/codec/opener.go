package codec

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// Opener opens messages of other agents. It is safe for use by several workers.
type Opener struct {
	// Trust says whose signatures count. It must not be nil.
	Trust *identity.Trust
	// Contracts, made from the same Trust, remembers bundles whose signature was
	// verified, so that a bank does not verify the user's for every seller's
	// copy. Nil: each is verified anew.
	Contracts *contract.Opener
}

// NewOpener returns an Opener that remembers at most n bundles.
func NewOpener(trust *identity.Trust, n int) Opener {
	return Opener{Trust: trust, Contracts: contract.NewOpener(trust, n)}
}

// Open reads a message that an authenticated sender sent, as things stand at a
// time. The error is an *Error. The message does not share memory with b.
func (o Opener) Open(b []byte, sender protocol.AgentID, at time.Time) (protocol.Message, error) {
	if m, ok := readQuick(b); ok {
		m.Sender = sender
		return m, nil
	}
	return o.openSlowly(b, sender, at)
}

// openSlowly reads any message by way of the wire types, and says why not.
func (o Opener) openSlowly(b []byte, sender protocol.AgentID, at time.Time) (protocol.Message, error) {
	e, err := unmarshal(b)
	if err != nil {
		return protocol.Message{}, &Error{Envelope: protocol.Message{Sender: sender}, Code: protocol.CodeMalformed, Err: err}
	}
	r := reader{signed: verifier{o, at}}
	m := r.message(e)
	m.Sender = sender
	if r.err != nil {
		m.Body = nil
		return protocol.Message{}, &Error{Envelope: m, Code: r.code, Err: r.err}
	}
	return m, nil
}

package codec

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// Opener opens messages of other agents. It is safe for use by several workers.
type Opener struct {
	// Trust decides whose signatures are valid. It must not be nil.
	Trust *identity.Trust
	// Contracts, made from the same Trust, remembers verified bundles, so that a bank
	// does not verify the user's signature again for every seller's copy. May be nil.
	Contracts *contract.Opener
}

// NewOpener returns an Opener that remembers at most n bundles.
func NewOpener(trust *identity.Trust, n int) Opener {
	return Opener{Trust: trust, Contracts: contract.NewOpener(trust, n)}
}

// Open reads a message from an authenticated sender and verifies its signatures as of
// a time. The error is an *Error. The message does not share memory with b.
func (o Opener) Open(b []byte, sender protocol.AgentID, at time.Time) (protocol.Message, error) {
	s := new(scratch)
	c, e := &s.coder, &s.envelope
	if err := unmarshal(b, e); err != nil {
		return protocol.Message{}, &Error{Envelope: protocol.Message{Sender: sender}, Code: protocol.CodeMalformed, Err: err}
	}
	c.documents = documents{opener: o, at: at}
	m := protocol.Message{Sender: sender}
	if c.message(&m, e); c.err != nil {
		m.Body = nil
		return protocol.Message{}, &Error{Envelope: m, Code: c.code, Err: c.err}
	}
	return m, nil
}

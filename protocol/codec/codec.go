// Package codec turns typed messages into bytes and bytes into typed messages.
//
// Open bounds, parses and verifies a message, so that no other package has to. It guarantees that
// every list is within the bounds of package protocol; that every constant is known, and every
// slot, price and time possible; that the body may come with its performative and protocol token;
// and that a signed document is a Verified, Sale, VerifiedReceipt or VerifiedNote whose signer,
// chain and terms are valid at that time. The sender is the one that the channel or the gossip
// signature authenticated, never a field.
//
//	protocol.Message --Seal--> bytes --Open--> protocol.Message
//
// Seal signs the documents of a bank and encodes; Encode refuses what Open would refuse. The bytes
// are protobuf (wire/wire.proto). Open ignores unknown fields, so that later versions can add some,
// and unknown settlement modes in a list of accepted ones; unknown bodies, performatives and other
// constants are errors. The same message gives the same bytes.
//
// The roles check whether the sender may send a message now, and whether the messages
// of a conversation fit together.
//
// To add a body, add its type to package message, its wire type to wire.proto and a
// row to the table here.
package codec

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// ErrLocal means that other agents must not see a message: it has a local body or is
// for a local correspondent.
var ErrLocal = errors.New("local message")

// Encode writes m for other agents, in at most protocol.MaxMessage bytes. The sender is not
// written. Texts for people are clipped to protocol.MaxWords, and control characters in them become
// spaces; everything else that Open would refuse is an error.
func Encode(m protocol.Message) ([]byte, error) { return encode(m, "") }

// EncodeTrace writes m with its sender, for DecodeTrace.
func EncodeTrace(m protocol.Message) ([]byte, error) {
	if err := m.Sender.Validate(); err != nil {
		return nil, fmt.Errorf("sender of a trace: %w", err)
	}
	return encode(m, m.Sender)
}

// DecodeTrace reads the output of EncodeTrace from this agent's own records. It is as
// strict as Open but does not verify signatures: Checked of signed documents is false.
func DecodeTrace(b []byte) (protocol.Message, error) {
	s := new(scratch)
	c, e := &s.coder, &s.envelope
	if err := unmarshal(b, e); err != nil {
		return protocol.Message{}, err
	}
	c.documents.own = true
	var m protocol.Message
	c.message(&m, e)
	c.agent("sender", &m.Sender, &e.Sender)
	if c.err != nil {
		return protocol.Message{}, fmt.Errorf("%s: %w", subject(m), c.err)
	}
	return m, nil
}

func encode(m protocol.Message, sender protocol.AgentID) ([]byte, error) {
	r, err := sendable(m)
	if err != nil {
		return nil, err
	}
	s := new(scratch)
	c, e := &s.coder, &s.envelope
	c.writes, c.row, e.Sender = true, r, string(sender)
	if c.message(&m, e); c.err != nil {
		return nil, fmt.Errorf("%s: %w", subject(m), c.err)
	}
	b, err := e.MarshalVTStrict()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject(m), err)
	}
	if len(b) > protocol.MaxMessage {
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", subject(m), len(b), protocol.MaxMessage)
	}
	return b, nil
}

// receiversField is the number of the receivers in wire.Envelope.
const receiversField = 7

// Readdress copies an encoded message to one receiver for another one. The result is
// what Encode writes for that receiver.
func Readdress(b []byte, to protocol.AgentID) ([]byte, error) {
	if err := to.Validate(); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	for at := 0; at < len(b); {
		num, _, n := protowire.ConsumeField(b[at:])
		if n < 0 {
			return nil, fmt.Errorf("not a message: %w", protowire.ParseError(n))
		}
		if num == receiversField {
			out := make([]byte, 0, len(b)-n+protowire.SizeTag(num)+protowire.SizeBytes(len(to)))
			out = protowire.AppendString(protowire.AppendTag(append(out, b[:at]...), num, protowire.BytesType), string(to))
			return append(out, b[at+n:]...), nil
		}
		at += n
	}
	return nil, errors.New("a message without a receiver")
}

func subject(m protocol.Message) string {
	kind := "no body"
	if m.Body != nil {
		kind = m.Body.Kind()
	}
	return fmt.Sprintf("%.32q (%s)", string(m.Performative), kind)
}

// unmarshal reads an envelope with its size and its number of parts bounded.
func unmarshal(b []byte, e *wire.Envelope) error {
	if len(b) > protocol.MaxMessage {
		return fmt.Errorf("a message of %d bytes, want at most %d", len(b), protocol.MaxMessage)
	}
	if err := scan(b); err != nil {
		return err
	}
	if err := e.UnmarshalVT(b); err != nil {
		return fmt.Errorf("not a message: %w", err)
	}
	return nil
}

// scratch is what a message needs while it is copied, in one piece of memory.
type scratch struct {
	coder    coder
	envelope wire.Envelope
}

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

// Package codec turns typed messages into bytes and bytes into typed messages.
//
// What Open returns was bounded, parsed and, where it is signed, verified: every
// list is within the bounds of package protocol, every word is of its closed set,
// every slot, price and time is possible, the body may come with this
// performative and protocol token, and a signed document is a Verified, Sale,
// VerifiedReceipt or VerifiedNote whose signer, chain and terms count at that
// time. The sender is whom the channel or the gossip signature authenticated,
// never a field. So nothing behind Open checks any of this again.
//
//	protocol.Message --Seal--> bytes --Open--> protocol.Message
//
// Seal signs what is signed on the way out, and is otherwise Encode, which refuses
// what Open would refuse. The bytes are protobuf (wire/wire.proto): unknown fields
// are ignored, so that later versions can add some, and so are unknown settlement
// modes in what somebody deals in; unknown bodies, performatives and other words are
// errors. The same message gives the same bytes.
//
// Whether the sender may say this now, and whether the parts of a conversation
// fit together, is for the roles.
package codec

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// ErrLocal is returned for a message that no other agent may see: one with a
// local body or for a local correspondent.
var ErrLocal = errors.New("local message")

// Encode writes m for other agents, in at most protocol.MaxMessage bytes. The
// sender is not written. Texts for people are clipped to protocol.MaxWords, and
// control characters in them become spaces; everything else that Open would
// refuse is an error.
func Encode(m protocol.Message) ([]byte, error) { return encode(m, "") }

// EncodeTrace writes m with its sender, for DecodeTrace.
func EncodeTrace(m protocol.Message) ([]byte, error) {
	if err := m.Sender.Validate(); err != nil {
		return nil, fmt.Errorf("sender of a trace: %w", err)
	}
	return encode(m, m.Sender)
}

// DecodeTrace reads what EncodeTrace wrote and this agent kept itself. It is as
// strict as Open, but signatures are not verified: signed parts say what they
// said when they were, and their Checked is false.
func DecodeTrace(b []byte) (protocol.Message, error) {
	e, err := unmarshal(b)
	if err != nil {
		return protocol.Message{}, err
	}
	r := reader{signed: kept{}}
	m := r.message(e)
	m.Sender = r.agent("sender", e.GetSender())
	if r.err != nil {
		return protocol.Message{}, fmt.Errorf("%s: %w", subject(m), r.err)
	}
	return m, nil
}

func encode(m protocol.Message, sender protocol.AgentID) ([]byte, error) {
	if b, ok := writeQuick(m, sender); ok {
		return b, nil
	}
	return encodeSlowly(m, sender)
}

// encodeSlowly writes any message by way of the wire types, and says why not.
func encodeSlowly(m protocol.Message, sender protocol.AgentID) ([]byte, error) {
	e, err := toWire(m)
	if err != nil {
		return nil, err
	}
	e.Sender = string(sender)
	r := reader{signed: unread{}, own: true}
	if r.message(e); r.err != nil {
		return nil, fmt.Errorf("%s: %w", subject(m), r.err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject(m), err)
	}
	if len(b) > protocol.MaxMessage {
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", subject(m), len(b), protocol.MaxMessage)
	}
	return b, nil
}

// subject names a message in an error.
func subject(m protocol.Message) string {
	kind := "no body"
	if m.Body != nil {
		kind = m.Body.Kind()
	}
	return fmt.Sprintf("%.32q (%s)", string(m.Performative), kind)
}

// unmarshal reads an envelope with its size and its number of parts bounded.
func unmarshal(b []byte) (*wire.Envelope, error) {
	if len(b) > protocol.MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes, want at most %d", len(b), protocol.MaxMessage)
	}
	if err := scan(b); err != nil {
		return nil, err
	}
	e := &wire.Envelope{}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	return e, nil
}

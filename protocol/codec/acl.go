package codec

import (
	"ramp/protocol"
	"ramp/protocol/acl"
)

// What ToACL says of content.
const (
	aclLanguage = "json"
	aclOntology = "ramp"
)

// ToACL is m as other FIPA platforms and people read it. The content is compact
// JSON of the body, with all its fields but those that are zero (a unit is always
// shown): an RFQL document as its XML, times as RFC 3339, durations as Go writes them, money as decimal
// credits, a signed document as what it says ("document"), the contract it is or
// is about, its signers, and the SignedData in Base64 ("der").
//
// If Encode accepts m, and its sender is an agent, the result is valid. Local
// messages are shown too.
func ToACL(m protocol.Message) acl.Message {
	out := acl.Message{
		Performative: m.Performative,
		Sender:       acl.AID{Name: string(m.Sender)},
		Protocol:     m.Protocol, ConversationID: m.Conversation,
		ReplyWith: m.ReplyWith, InReplyTo: m.InReplyTo, ReplyBy: m.ReplyBy,
	}
	for _, a := range m.Receivers {
		out.Receivers = append(out.Receivers, acl.AID{Name: string(a)})
	}
	if m.Body != nil {
		out.Content.Text, out.Language, out.Ontology = string(view(m.Body)), aclLanguage, aclOntology
	}
	return out
}

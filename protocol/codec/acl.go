package codec

import (
	"ramp/protocol"
	"ramp/protocol/acl"
	"reflect"
)

// The language and ontology of content from ToACL.
const (
	aclLanguage = "json"
	aclOntology = "ramp"
)

// ToACL converts m for other FIPA platforms and for people. The content is compact JSON of the body
// without its zero fields (a unit is always shown): an RFQL document as XML, times as RFC 3339,
// durations as in Go, money as decimal credits. A signed document has its content ("document"), the
// ID of its contract, its signers, and the SignedData in Base64 ("der").
//
// The result is valid if Encode accepts m and its sender is an agent. ToACL also
// converts local messages.
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
		out.Content.Text, out.Language, out.Ontology = string(appendView(nil, reflect.ValueOf(m.Body))), aclLanguage, aclOntology
	}
	return out
}

// Package acl reads and writes FIPA-ACL messages (FIPA SC00061) in their string
// representation (SC00070) and as JSON.
//
// Parse is tolerant: it accepts the output of common FIPA platforms, even where it
// deviates from the standard. Format writes a form that all of them read. Parsing
// that form gives the same Message again.
//
// The string form; brackets show the deviations that Parse allows:
//
//	act      = "(" word { ":" key value } ")"           keys and words in any case
//	value    = aid | "(" "set" {aid} ")"                sender, receiver, reply-to [set or sequence]
//	         | string                                   content [any expr]
//	         | word                                     protocol [any expr]
//	         | datetime                                 reply-by [also quoted]
//	         | expr                                     all others
//	aid      = "(" "agent-identifier" { ":" key value } ")"
//	expr     = word | string | number | datetime | "(" {expr} ")"
//	string   = '"' { not '"' | '\"' } '"'  |  "#" digits '"' exactly that many bytes ['"']
//	datetime = ["+"|"-"] YYYYMMDD "T" hhmmss [mmm] [letter]       Z is UTC, others are local
//
// The only escape is \": any other backslash stands for itself. A bare token that is neither word,
// number nor date is text. Values have no types: the word a, the string "a" and #1"a are the same
// text, and the expression (a b) is the text of its source.
//
// The package never interprets content and never reads a clock: a relative reply-by stays relative.
package acl

import (
	"time"

	"ramp/protocol"
)

// Bounds of a message. ParseAll, Validate and UnmarshalJSON enforce them.
const (
	MaxText      = 4 * protocol.MaxMessage // bytes of a message in string or JSON form, with Base64 and escapes
	MaxDepth     = 16                      // nesting of expressions and of resolvers
	MaxAgents    = protocol.MaxReceivers   // agents in one list
	MaxAddresses = 64                      // addresses of one agent
	MaxUser      = 64                      // user parameters of one message or one agent
	MaxValue     = 64 << 10                // bytes of one value other than content
)

// Message is one FIPA-ACL message. A zero field is an absent parameter; FIPA gives
// an empty one no other meaning.
type Message struct {
	Performative   protocol.Performative
	Sender         AID // no name: absent
	Receivers      []AID
	ReplyTo        []AID
	Content        Content
	Language       string
	Encoding       string
	Ontology       string
	Protocol       string
	ConversationID string
	ReplyWith      string
	InReplyTo      string
	ReplyBy        time.Time      // in whole milliseconds, years 1970..9999
	ReplyIn        *time.Duration // a reply-by relative to the time of sending; not with ReplyBy
	User           map[string]string
}

// AID is an agent identifier (FIPA SC00023): a name, transport addresses, and agents
// that know more addresses.
type AID struct {
	Name      string
	Addresses []string
	Resolvers []AID
	User      map[string]string // as in Message
}

// Content is the content of a message: text, or bytes that are not text. At most one
// field is set. Bytes travel as Base64 with the user parameter X-JADE-Encoding;
// content that is not UTF-8 is read as Bytes.
type Content struct {
	Text  string
	Bytes []byte
}

// Empty reports whether there is no content.
func (c Content) Empty() bool { return c.Text == "" && len(c.Bytes) == 0 }

// Known reports whether p is one of FIPA's communicative acts (SC00037), in lower case.
func Known(p protocol.Performative) bool {
	switch p {
	case "accept-proposal", "agree", "cancel", "cfp", "confirm", "disconfirm", "failure",
		"inform", "inform-if", "inform-ref", "not-understood", "propagate", "propose", "proxy",
		"query-if", "query-ref", "refuse", "reject-proposal", "request", "request-when",
		"request-whenever", "subscribe":
		return true
	}
	return false
}

// The user parameter by which JADE marks content as Base64.
const (
	encodingKey   = "X-JADE-Encoding"
	encodingValue = "Base64"
)

// text is the field of the parameter key (in lower case), if its value is plain text.
func (m *Message) text(key string) (*string, bool) {
	switch key {
	case "language":
		return &m.Language, true
	case "encoding":
		return &m.Encoding, true
	case "ontology":
		return &m.Ontology, true
	case "protocol":
		return &m.Protocol, true
	case "conversation-id":
		return &m.ConversationID, true
	case "reply-with":
		return &m.ReplyWith, true
	case "in-reply-to":
		return &m.InReplyTo, true
	}
	return nil, false
}

// textKeys are the keys that text knows, in the order in which they are written.
func textKeys() [7]string {
	return [7]string{"language", "encoding", "ontology", "protocol", "conversation-id", "reply-with", "in-reply-to"}
}

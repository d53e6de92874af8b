// Package acl reads and writes FIPA-ACL messages (FIPA SC00061) in their string
// representation (SC00070) and as JSON.
//
// Parse is tolerant: it reads what the platforms in use write, also where they
// differ from the standard. Format writes what all of them read. Whatever Parse
// accepts, Format writes so that Parse gives the same Message again.
//
// The string form, with the widening that Parse allows in brackets:
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
// Only \" is an escape: a backslash elsewhere is itself. A bare token that is
// neither word, number nor date is read as text. No value has a type: the word
// a, the string "a" and #1"a are the same text, and the expression (a b) is the
// text of its source.
//
// The package never interprets content, and never reads a clock: a relative
// reply-by stays relative.
package acl

import (
	"time"

	"ramp/protocol"
)

// Bounds of a message. Parse, Validate and UnmarshalJSON refuse what exceeds
// them.
const (
	MaxText      = 4 * protocol.MaxMessage // bytes of a message in string or JSON form: Base64 and escapes take room
	MaxDepth     = 16                      // nesting of expressions and of resolvers
	MaxAgents    = protocol.MaxReceivers   // agents in one list
	MaxAddresses = 64                      // addresses of one agent
	MaxUser      = 64                      // user parameters of one message or one agent
	MaxValue     = 64 << 10                // bytes of any one value but content
)

// Message is one FIPA-ACL message. The zero value of a field means that the
// parameter is absent: FIPA gives an empty one no other meaning.
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

// AID is an agent identifier (FIPA SC00023): a name, the addresses of its
// transports, and agents that know more addresses.
type AID struct {
	Name      string
	Addresses []string
	Resolvers []AID
	User      map[string]string // as in Message
}

// Content is what a message says: text, or bytes that are not text. At most one
// of the two is set. Bytes travel as Base64 under the user parameter
// X-JADE-Encoding; content that is not UTF-8 is read as Bytes.
type Content struct {
	Text  string
	Bytes []byte
}

// Empty reports whether there is no content.
func (c Content) Empty() bool { return c.Text == "" && len(c.Bytes) == 0 }

// Known reports whether p is one of FIPA's communicative acts (SC00037), in
// lower case.
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

// text is where the parameter key (in lower case) is kept, if its value is plain
// text.
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

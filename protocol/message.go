package protocol

import (
	"strings"
	"time"
)

// Performative is a FIPA communicative act (SC00037), in lower case.
type Performative string

// The performatives in use here; package acl knows all of FIPA's.
const (
	AcceptProposal Performative = "accept-proposal"
	Agree          Performative = "agree"
	Cancel         Performative = "cancel"
	CFP            Performative = "cfp"
	Confirm        Performative = "confirm"
	Failure        Performative = "failure"
	Inform         Performative = "inform"
	NotUnderstood  Performative = "not-understood"
	Propose        Performative = "propose"
	QueryRef       Performative = "query-ref"
	Refuse         Performative = "refuse"
	RejectProposal Performative = "reject-proposal"
	Request        Performative = "request"
)

// The protocol tokens name the rules of a conversation.
const (
	ProtocolPresence = "ramp-presence"
	ProtocolAuction  = "fipa-iterated-contract-net"
	ProtocolCommit   = "ramp-commit"
	ProtocolRequest  = "fipa-request"
	ProtocolIndex    = "ramp-index"
	ProtocolEnglish  = "fipa-auction-english"
	ProtocolQueue    = "ramp-queue"   // local: with the batch system
	ProtocolControl  = "ramp-control" // local: with the agent's owner
)

// Body is the typed content of a message. Package message defines them all.
type Body interface {
	// Kind is the name of the body on the wire.
	Kind() string
}

// Message is one FIPA-ACL message with its content already parsed.
type Message struct {
	Performative Performative
	Sender       AgentID   // from the authenticated channel, never from a field
	Receivers    []AgentID // 1..MaxReceivers; Everyone means gossip
	Protocol     string
	Conversation string // chosen by the initiator, globally unique
	ReplyWith    string
	InReplyTo    string
	ReplyBy      time.Time // deadline of the next message; zero: no deadline
	Body         Body
}

// Reply is a message that answers m: same protocol and conversation, receiver and sender swapped.
func (m Message) Reply(self AgentID, p Performative, body Body) Message {
	return Message{
		Performative: p, Sender: self, Receivers: []AgentID{m.Sender},
		Protocol: m.Protocol, Conversation: m.Conversation, InReplyTo: m.ReplyWith, Body: body,
	}
}

// Record is a change of durable state: an upsert of {table, key, value}, or a
// deletion when Value is nil. The snapshot is the content of the store.
type Record struct {
	Table string
	Key   string
	Value []byte
}

// Uncertain is the error of a store that does not know yet whether it has saved its last records.
type Uncertain string

func (e Uncertain) Error() string { return string(e) }

// ErrDisk is the error of a store whose disk failed while it wrote or flushed its last
// records, for another reason than a lack of room. The kernel reports such a failure once,
// and may then show data that never reaches the disk, so the process must end.
const ErrDisk Uncertain = "the disk failed while records were being written"

// Output is everything that a role may do.
type Output struct {
	Save   []Record  // durable before anything in Send leaves
	Send   []Message // to other agents, or to local correspondents
	Hint   []Message // leave at once: they promise nothing, and a crash may undo why they were sent
	WakeAt time.Time // one alarm; zero leaves the pending alarm unchanged
}

// Join appends o to out and takes the earlier of the two alarms.
func (out Output) Join(o Output) Output {
	out.Save = append(out.Save, o.Save...)
	out.Send = append(out.Send, o.Send...)
	out.Hint = append(out.Hint, o.Hint...)
	out.WakeAt = Earlier(out.WakeAt, o.WakeAt)
	return out
}

// Earlier is the earlier of two alarms; zero is no alarm.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Tables are the live tables of a role's store, from which it is restored.
type Tables interface {
	// Each calls f with every record of a table in order of key, until f fails. The
	// value is only good during the call. f must not use the tables.
	Each(table string, f func(key string, value []byte) error) error
	// Get is the value of a key, which the caller must not change; nil: the table has no such key.
	Get(table, key string) ([]byte, error)
}

// QuotePrefix begins the conversation-ids of quotes, which buy nothing: nobody traces them,
// and their buyer ends them without a word.
const QuotePrefix = "quote-"

// IsQuote reports whether a conversation is a quote by its ID. A purchase whose buyer
// gives it such an ID is treated like one by the sellers.
func IsQuote(conversation string) bool { return strings.HasPrefix(conversation, QuotePrefix) }

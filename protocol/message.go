package protocol

import "time"

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

// The protocol tokens: which conversation rules a message follows.
const (
	ProtocolPresence = "ramp-presence"
	ProtocolAuction  = "fipa-iterated-contract-net"
	ProtocolCommit   = "ramp-commit"
	ProtocolRequest  = "fipa-request"
	ProtocolQueue    = "ramp-queue"   // local: with the batch system
	ProtocolControl  = "ramp-control" // local: with the agent's owner
)

// Body is the typed content of a message; package message has them all.
type Body interface {
	// Kind is the word by which the body is known on the wire.
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
	ReplyBy      time.Time // bounds the next message; zero: no bound
	Body         Body
}

// Reply is a message that answers m: same protocol and conversation, receiver
// and sender swapped.
func (m Message) Reply(self AgentID, p Performative, body Body) Message {
	return Message{
		Performative: p, Sender: self, Receivers: []AgentID{m.Sender},
		Protocol: m.Protocol, Conversation: m.Conversation, InReplyTo: m.ReplyWith, Body: body,
	}
}

// Record is a change of durable state: an upsert of {table, key, value}, or a
// deletion when Value is nil. What the store holds is the snapshot.
type Record struct {
	Table string
	Key   string
	Value []byte
}

// Uncertain is the error of a store that cannot tell yet whether the records that it
// was given are there.
type Uncertain string

func (e Uncertain) Error() string { return string(e) }

// Output is all that a role may do to the world.
type Output struct {
	Save   []Record  // durable before anything in Send leaves
	Send   []Message // to other agents, or to local correspondents
	WakeAt time.Time // one alarm; zero leaves the standing alarm alone
}

// Join appends o to out; the earlier of the two alarms stands.
func (out Output) Join(o Output) Output {
	out.Save = append(out.Save, o.Save...)
	out.Send = append(out.Send, o.Send...)
	out.WakeAt = Earlier(out.WakeAt, o.WakeAt)
	return out
}

// Earlier is the earlier of two alarms, where zero means none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Tables is what a role is restored from: the live tables of its store.
type Tables interface {
	// Each calls f with every record of a table in order of key, until f fails.
	Each(table string, f func(key string, value []byte) error) error
}

// Package agents runs roles. It delivers messages to them, makes the records of
// their outputs durable, and only then sends the messages.
package agents

import (
	"time"

	"ramp/protocol"
)

// Role is an agent: user, resource or bank. One goroutine owns it; it never
// blocks, and acts only through its Output.
type Role interface {
	Receive(now time.Time, m protocol.Message) protocol.Output
	Wake(now time.Time) protocol.Output
}

// Shell is a role around another one. A Runner's Do calls the inner one, and its answer
// passes through the shell. (Pure packages implement it, which cannot import this one.)
type Shell interface {
	Role
	Through(now time.Time, call func(inner any) protocol.Output) protocol.Output
}

// Store stores the records of a role. The journal of user and resource agents and
// the ledger's database are stores; storetest is the contract test of both.
type Store interface {
	protocol.Tables
	// Append makes the records durable, in order and all or nothing, before it
	// returns. A record with a nil Value deletes its key. After an error none of them
	// is stored, and later calls may succeed (if the disk was full). After a
	// protocol.Uncertain they may or may not be stored; protocol.ErrDisk ends the process.
	Append(records []protocol.Record) error
}

// Transport carries messages to other agents.
type Transport interface {
	// Send queues m for its receivers and returns at once. An undeliverable message
	// comes back as a failure from protocol.LocalMesh.
	Send(m protocol.Message)
}

// Package agents runs roles: it brings them what arrived, makes durable what
// they want saved, and only then sends what they want sent.
package agents

import "ramp/protocol"

// Store keeps what a role saved. The journal of user and resource agents and
// the ledger's database are stores; storetest is the contract test of both.
type Store interface {
	protocol.Tables
	// Append makes the records durable, in order and all or nothing, before it
	// returns. A record with a nil Value deletes its key. After an error nothing
	// of the call is there, and later calls may succeed (a disk that was full); after a
	// protocol.Uncertain that is not known.
	Append(records []protocol.Record) error
}

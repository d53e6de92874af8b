// Package index finds sellers in a market that is too large to hear all of them.
//
// Banks and sites that volunteer keep records, which sellers sign and bring. A Server
// answers queries with rows, and with the signed records on demand. A Seller renews its
// record and asks for it, to see that it is kept. A Search asks for a buyer two replicas
// of each of a few shards, and keeps only what sellers have signed.
//
//	Search: census --2 answers--> rows --answers, or patience--> records --likewise--> done
//	records --a server lacks what it listed--> records, once more
//
// An index has no authority: it can hide sellers or delay answers, and never change what a
// seller says. Offers decide. No part reads a clock or a random source; records are signed
// deterministically.
package index

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Rules of the index (docs/decisions/0034).
const (
	From      = 300              // sellers from which the index replaces gossip
	Until     = 240              // below, gossip replaces the index again
	Replicas  = 3                // of a shard, with different issuers if there are as many
	ShardSize = 2000             // records; a class with more is split
	Life      = 30 * time.Minute // of a record, from its issue
	PutEvery  = 10 * time.Minute
	PutLeast  = 30 * time.Second // between two records of a seller
	Beat      = time.Minute      // between digests, and between an index's other chores
	Patience  = time.Second      // for an index's answer, if another one has answered
	LastCall  = 5 * time.Second  // for the first answer
	ringLife  = 10 * time.Second // until the sellers of a shard are put in order again
	placeLife = 10 * time.Second // until it is worked out again which shards are kept
	Avoided   = 10 * time.Minute // how long an index that kept silent or made rows up is not asked
)

// Bounds of an index.
const (
	MaxServers  = 1024                  // that an agent knows: any is one hop away
	MaxEntries  = 1 << 16               // records of a server; beyond, the issuer with the most loses its oldest
	MaxOfNet    = 1024                  // of them with an address in the same /24, or /48 of IPv6
	MaxRings    = 256                   // shards whose order a server remembers
	MaxCurrent  = 8                     // currencies of a record that are indexed
	MaxSenders  = 4096                  // whose messages a server counts in a Beat
	MaxSent     = 600                   // messages that a server takes from one of them in a Beat
	maxNear     = 4096                  // shards whose homes a server remembers
	maxExamined = 4 * message.MaxDigest // shards whose homes are worked out for a digest
	slackBits   = 1                     // records and queries may come split by so many bits more or less
	spareHomes  = 2                     // servers after the replicas that also take a record: views differ
)

// Role is a state machine that a Server or a Seller adds to.
type Role interface {
	Receive(now time.Time, m protocol.Message) protocol.Output
	Wake(now time.Time) protocol.Output
}

// Package ledgeretcd keeps a bank's ledger in an etcd cluster, so that the bank
// goes on when a machine dies.
//
// Several agents with the bank's credential may open the same ledger. One leads
// and writes; the others follow what it writes and wait:
//
//	following --nobody leads, a lease was won--> leading
//	leading   --the lease is over-------------> lost (open again to follow)
//
// The ledger in etcd is a journal. One Append makes one entry, with the head of the log that was
// signed with it, and one put makes it durable. That put succeeds only if the leader's key still
// has the create revision of its election, and if the entry's number is free: so a deposed leader
// cannot write, however long it slept, and nothing is written twice. When an answer is missing the
// leader repeats the same put, until it knows the result or its lease is over.
//
// Every agent applies the journal to a file of its own, the mirror (package ledgerdb), and reads
// tables, history, log and audit there. Entries of the journal are chained by their hashes, and the
// store refuses a mirror of another journal. A mirror can be removed at any time; the next start
// rebuilds it from the journal. Import copies a ledger from a file to a cluster without one.
//
//	PREFIX/leader               the leader; ends with its lease
//	PREFIX/journal/NUMBER       entries, from 1
//	PREFIX/part/NUMBER/TERM/I   parts of an entry that is too large for one put
package ledgeretcd

import (
	"errors"
	"time"

	"ramp/protocol"
)

// Times of a leader. etcd grants a lease; the leader counts it from before its request,
// so that it stops before another one begins.
const (
	LeaseTime  = 3 * time.Second        // until others may lead after the leader has died
	renewEvery = 300 * time.Millisecond // between renewals
	pollEvery  = 100 * time.Millisecond // between polls of a follower
	askFirst   = 400 * time.Millisecond // for one answer, before the next member is asked
	askMost    = 1600 * time.Millisecond
	pauseTime  = 20 * time.Millisecond // between tries when one fails at once
	closeTime  = time.Second           // to give the lease back
)

// Sizes of the journal. etcd takes requests of up to 1.5 MiB by default, and its
// gateway gives answers of up to 4 MiB.
const (
	maxInline  = 1 << 18  // octets of an entry, or of a part of one, in one put
	maxParts   = 255      // in one entry
	maxPayload = 60 << 20 // octets of an entry before it is compressed
	packFrom   = 512      // octets from which on a payload is compressed
	pageLength = 12       // entries read at once
	maxRecords = 1 << 20  // of one entry
)

// ErrUncertain: the lease ended before the leader knew whether the entry was written.
// The next leader knows.
const ErrUncertain protocol.Uncertain = "lost the etcd cluster while an entry was on its way: the next leader knows whether it was written"

// Errors of a store.
var (
	// ErrDeposed: this store no longer leads; nothing was written. Open it again to follow.
	ErrDeposed = errors.New("another bank agent may lead: this one no longer writes")
	// ErrForeign: the mirror belongs to another journal than this cluster's.
	ErrForeign = errors.New("the local mirror belongs to another journal than the cluster's")
	// ErrDamaged: the journal cannot be read.
	ErrDamaged = errors.New("the journal in etcd is damaged")
	// ErrLed: another agent leads, and the time to wait is over.
	ErrLed = errors.New("another bank agent leads")
)

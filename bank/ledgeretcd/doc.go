// Package ledgeretcd keeps a bank's ledger in an etcd cluster, so that the bank
// goes on when a machine dies.
//
// Several agents with the bank's credential may open the same ledger. One leads
// and writes; the others follow what it writes and wait:
//
//	following --nobody leads, a lease was won--> leading
//	leading   --the lease is over-------------> lost (open again to follow)
//
// The ledger in etcd is a journal. What one Append saves is one entry of it, with
// the head of the log that was signed with it, and is made durable by one put.
// That put holds only if the key of the one who leads is still the very one that
// it made when it won (its create revision), and if nobody has taken the entry's
// number: so who was deposed cannot write, however long it slept, and what was
// written once is not written twice. When an answer does not come the same put is
// tried again, until it is known what became of it or the lease is over.
//
// Every agent applies the journal to a file of its own, the mirror (package
// ledgerdb): tables, history, log and audit are read from there. Entries of the
// journal are chained by their hashes, and a mirror that is not of the cluster's
// journal is refused. A mirror can be removed at any time; it is then built anew
// from the journal. A ledger in a file becomes one in a cluster that has none by Import.
//
//	PREFIX/leader               who leads; goes with its lease
//	PREFIX/journal/NUMBER       entries, from 1
//	PREFIX/part/NUMBER/TERM/I   parts of an entry that is too large for one put
package ledgeretcd

import (
	"errors"
	"time"

	"ramp/protocol"
)

// Times of a leader. A lease is given by etcd; who leads counts it from before it
// asked, so that it stops no later than others begin.
const (
	LeaseTime  = 3 * time.Second        // until others may lead after the leader has died
	renewEvery = 300 * time.Millisecond // between renewals
	pollEvery  = 100 * time.Millisecond // between looks of those who follow
	askFirst   = 400 * time.Millisecond // for one answer; then another member is asked
	askMost    = 1600 * time.Millisecond
	pauseTime  = 20 * time.Millisecond // between tries when one fails at once
	closeTime  = time.Second           // to give the lease back
)

// Sizes of the journal. etcd takes requests of up to 1.5 MiB by default, and its
// gateway gives answers of up to 4 MiB.
const (
	maxInline  = 1 << 18  // octets of an entry, or of a part of one, in one put
	maxParts   = 255      // of one entry
	maxPayload = 60 << 20 // octets of an entry before it is compressed
	packFrom   = 512      // octets from which on it is compressed
	pageLength = 12       // entries read at once
	maxRecords = 1 << 20  // of one entry
)

// ErrUncertain: the lease ended before it was known whether the entry had been
// written. Who leads next knows.
const ErrUncertain protocol.Uncertain = "lost the etcd cluster while an entry was on its way: who leads next knows whether it is there"

// What can happen to a leader.
var (
	// ErrDeposed: this store does not lead any more; nothing was written. Open it
	// again to follow.
	ErrDeposed = errors.New("another bank agent may lead: nothing more is written from here")
	// ErrForeign: the mirror is not of the journal in this cluster.
	ErrForeign = errors.New("the local mirror is not of the cluster's journal")
	// ErrDamaged: the journal cannot be read.
	ErrDamaged = errors.New("the journal in etcd is damaged")
	// ErrLed: another leads, and the time to wait is over.
	ErrLed = errors.New("another bank agent leads")
)

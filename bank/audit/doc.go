// Package audit lets outsiders check a bank's history.
//
// Every entry of a ledger is a leaf of an append-only Merkle tree, hashed as RFC
// 6962 says; the leaf is the entry's number, 8 octets, and its record. The bank
// signs heads: the tree's size and root at a time. Three things can then be
// checked without the bank:
//
//   - inclusion: an entry is in the log that a head stands for
//   - growth: the log of a later head begins with all of an earlier one
//   - no fork: two heads of one size have one root
//
// A Tree grows by entries and gives the tiles of hashes to store. Proofs are
// made from these in a time that grows with the logarithm of the log. A Memory
// is what somebody remembers of a bank's heads and judges the next one by.
//
// Nothing here reads a clock, a file or a socket, and nothing signs.
package audit

import (
	"encoding/binary"
	"errors"
)

// Sizes of the log.
const (
	HashSize   = 32                          // octets of a hash: SHA-256
	tileHeight = 6                           // levels of the tree in one row of tiles
	TileWidth  = 1 << tileHeight             // hashes of a tile
	TileSize   = TileWidth * HashSize        // octets of a tile
	maxRows    = 8                           // rows of tiles: far more entries than there will be
	maxSize    = 1 << (tileHeight * maxRows) // entries of a log
	maxPath    = 2 * tileHeight * maxRows    // hashes of one proof
)

// What is wrong with a bank.
var (
	// ErrFork: the bank signed two heads that no log can have grown through.
	ErrFork = errors.New("the bank has forked its log")
	// ErrShrunk: the bank tells of a log that is shorter than it was.
	ErrShrunk = errors.New("the bank's log has shrunk")
	// ErrStale: the newest head is too old.
	ErrStale = errors.New("the bank's head is stale")
	// ErrProof: a proof does not prove what it should.
	ErrProof = errors.New("the proof does not hold")
	// ErrUnknown: what is there neither proves nor disproves that the log only
	// grew; a fresh proof would.
	ErrUnknown = errors.New("cannot tell whether the log only grew")
	// ErrDamaged: stored hashes do not belong together.
	ErrDamaged = errors.New("the log is damaged")
)

// Leaf is what is hashed for an entry: its number and its record.
func Leaf(number uint64, record []byte) []byte {
	return append(appendNumber(nil, number), record...)
}

// appendNumber writes a number as the keys of the ledger have it.
func appendNumber(b []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(b, n) }

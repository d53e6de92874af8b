// Package audit lets outsiders check a bank's history.
//
// Every entry of a ledger is a leaf of an append-only Merkle tree, hashed by RFC
// 6962; the leaf is the entry's number, 8 octets, and its record. The bank
// signs heads: the tree's size and root at a time. Anybody can then check three things
// without the bank:
//
//   - inclusion: an entry is in the log of a head
//   - growth: the log of a later head begins with all of an earlier one
//   - no fork: two heads of one size have one root
//
// A Tree grows by entries and returns the tiles of hashes to store. A proof takes a time
// that grows with the logarithm of the log. A Memory keeps the heads that somebody has
// seen of banks, and checks the next one against them.
//
// Nothing here reads a clock, a file or a socket, and nothing signs.
package audit

import "errors"

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

// Faults of a bank and of its proofs.
var (
	// ErrFork: the bank signed two heads that no log can have grown through.
	ErrFork = errors.New("the bank has forked its log")
	// ErrShrunk: the bank shows a log that is shorter than before.
	ErrShrunk = errors.New("the bank's log has shrunk")
	// ErrStale: the newest head is too old.
	ErrStale = errors.New("the bank's head is stale")
	// ErrProof: a proof does not prove what it should.
	ErrProof = errors.New("the proof does not hold")
	// ErrUnknown: the proof at hand does not show whether the log only grew; a fresh one would.
	ErrUnknown = errors.New("cannot tell whether the log only grew")
	// ErrDamaged: stored hashes do not belong together.
	ErrDamaged = errors.New("the log is damaged")
)

package audit

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"ramp/protocol/contract"
)

// Inclusion is the path from an entry to the root of the log of a size, which is at most
// the tree's.
func (t *Tree) Inclusion(number, size uint64, tiles Tiles) ([][]byte, error) {
	if number < 1 || number > size || size > t.Size() {
		return nil, fmt.Errorf("entry %d of %d, in a log of %d", number, size, t.Size())
	}
	n, err := proof.Inclusion(number-1, size)
	if err != nil {
		return nil, err
	}
	return t.rehash(n, tiles)
}

// Growth is the proof that the log of size to, which is at most the tree's,
// begins with that of size from. It is empty if from is 0 or to.
func (t *Tree) Growth(from, to uint64, tiles Tiles) ([][]byte, error) {
	if from > to || to > t.Size() {
		return nil, fmt.Errorf("growth from %d to %d, in a log of %d", from, to, t.Size())
	}
	if from == 0 || from == to {
		return nil, nil
	}
	n, err := proof.Consistency(from, to)
	if err != nil {
		return nil, err
	}
	return t.rehash(n, tiles)
}

func (t *Tree) rehash(n proof.Nodes, tiles Tiles) ([][]byte, error) {
	hashes, err := t.nodes(n.IDs, tiles)
	if err != nil {
		return nil, err
	}
	return n.Rehash(hashes, hashNode)
}

// RootAt is the root of the log at a size, which is at most the tree's.
func (t *Tree) RootAt(size uint64, tiles Tiles) ([HashSize]byte, error) {
	if size > t.Size() {
		return [HashSize]byte{}, fmt.Errorf("%w: a log of %d was once of %d", ErrDamaged, t.Size(), size)
	}
	if size == t.Size() {
		return t.Root(), nil
	}
	old := NewTree()
	old.size = size
	hashes, err := t.nodes(rangeNodes(size), tiles)
	if err != nil {
		return [HashSize]byte{}, err
	}
	if old.roots, err = old.factory.NewRange(0, size, hashes); err != nil {
		return [HashSize]byte{}, err
	}
	return old.Root(), nil
}

// VerifyInclusion checks that a record is entry number of the log of a head.
func VerifyInclusion(h contract.Head, number uint64, record []byte, path [][]byte) error {
	root, err := hex.DecodeString(h.Root)
	if err != nil {
		return fmt.Errorf("%w: root of the head: %w", ErrProof, err)
	}
	if number < 1 || number > h.Size {
		return fmt.Errorf("%w: entry %d is not in a log of %d", ErrProof, number, h.Size)
	}
	leaf := hashLeaf(number, record)
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, number-1, h.Size, leaf, path, root); err != nil {
		return fmt.Errorf("%w: entry %d in a log of %d: %s", ErrProof, number, h.Size, inWords(err))
	}
	return nil
}

// VerifyGrowth checks that the log of a head begins with the one of an earlier
// head, or is the same.
func VerifyGrowth(from, to contract.Head, path [][]byte) error {
	root1, err1 := hex.DecodeString(from.Root)
	root2, err2 := hex.DecodeString(to.Root)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%w: a head without a root", ErrProof)
	}
	if from.Size == 0 && len(path) == 0 {
		return nil // every log begins with the empty one
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, from.Size, to.Size, path, root1, root2); err != nil {
		return fmt.Errorf("%w: growth from %d to %d entries: %s", ErrProof, from.Size, to.Size, inWords(err))
	}
	return nil
}

// inWords leaves out the octets of two roots, for people.
func inWords(err error) string {
	var m proof.RootMismatchError
	if errors.As(err, &m) {
		return "it leads to another root"
	}
	return err.Error()
}

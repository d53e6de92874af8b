package audit

import (
	"crypto/sha256"
	"encoding/binary"
)

// The prefixes of RFC 6962, section 2.1: no leaf hashes as a node does.
const (
	leafPrefix = 0
	nodePrefix = 1
)

// hashLeaf hashes an entry: its number and its record. It is the library's HashLeaf with
// less copying: every settlement calls it.
func hashLeaf(number uint64, record []byte) []byte {
	b := append(make([]byte, 0, 256), leafPrefix)
	b = append(binary.BigEndian.AppendUint64(b, number), record...)
	sum := sha256.Sum256(b)
	return sum[:]
}

// hashNode is the library's HashChildren.
func hashNode(l, r []byte) []byte {
	var b [1 + 2*HashSize]byte
	b[0] = nodePrefix
	copy(b[1:], l)
	copy(b[1+HashSize:], r)
	sum := sha256.Sum256(b[:])
	return sum[:]
}

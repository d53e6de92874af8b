package ledger

import (
	"encoding/binary"
	"encoding/hex"

	"ramp/bank/row"
	"ramp/protocol"
)

// contractKey is a contract ID as octets.
type contractKey [32]byte

func parseContract(id protocol.ContractID) (contractKey, error) {
	var k contractKey
	if len(id) != 2*len(k) {
		return k, refuse(protocol.CodeMalformed, "contract ID of %d characters, want %d", len(id), 2*len(k))
	}
	if _, err := hex.Decode(k[:], []byte(id)); err != nil || k.id() != id {
		return k, refuse(protocol.CodeMalformed, "contract ID %q: want lower-case hex", string(id))
	}
	return k, nil
}

func readContract(d *row.Reader) (k contractKey) {
	copy(k[:], d.Octets(len(k)))
	return k
}

func (k contractKey) id() protocol.ContractID {
	var b [2 * len(k)]byte // an audit does this for every entry: one allocation, not two
	hex.Encode(b[:], k[:])
	return protocol.ContractID(b[:])
}

// ContractKey is the key of a contract in TableContracts, and the prefix of the
// keys of its refunds in TableRefunds.
func ContractKey(id protocol.ContractID) (string, error) {
	k, err := parseContract(id)
	return string(k[:]), err
}

func refundKey(k contractKey, unit int) string {
	return string(binary.BigEndian.AppendUint16(k[:], uint16(unit)))
}

// NumberKey is the key of entry n in TableEntries and TableOutcomes. Keys are
// big-endian, so that the order of keys is the order of numbers.
func NumberKey(n uint64) string { return row.Key64(n) }

// LineKey is the key of a line in TableLines and TableBalances, and the prefix of
// its keys in TableIndex.
func LineKey(n uint32) string { return row.Key32(n) }

// IndexKey is the key under which a block of entries of a line ends at entry
// last: the first key not below IndexKey(line, n) has the first entry of the
// line from n on.
func IndexKey(line uint32, last uint64) string { return row.Key32(line) + row.Key64(last) }

package ledgerdb

import (
	"encoding/binary"
	"fmt"

	"ramp/bank/audit"
	"ramp/bank/boltfile"
	"ramp/bank/row"
)

// logState is the stored state of a logbook, enough to notice changed tiles and entries.
type logState struct {
	size   uint64
	root   [audit.HashSize]byte
	digest digest
	txid   uint64 // number of the transaction that wrote it
	heads  uint64 // number of the last head, if they are counted
	counts bool
}

// Formats of a logState. Format 1 does not count heads, and formats 1 and 2 have no sum
// at their end: with a fault in the transaction's number they look as if a program
// without logs had written last.
const (
	logFormat    = 3
	uncounted    = 1 + 8 + audit.HashSize + 8 + 8 // octets in format 1
	unsummed     = uncounted + 8                  // in format 2
	logStateSize = unsummed + 8
)

func (s logState) encode() []byte {
	b := row.New(logFormat, logStateSize).Uint64(s.size).Octets(s.root[:]).Uint64(uint64(s.digest)).Uint64(s.txid).Uint64(s.heads)
	return b.Uint64(sumOf(b))
}

// sumOf is the checksum at the end of a state.
func sumOf(state []byte) uint64 { return uint64(rowNumber([]byte("log"), []byte("state"), state)) }

func decodeLogState(b []byte) (s logState, err error) {
	size := 0
	if len(b) > 0 {
		size = map[byte]int{1: uncounted, 2: unsummed, logFormat: logStateSize}[b[0]]
	}
	switch {
	case len(b) == 0 || len(b) != size:
		return s, fmt.Errorf("%w: the log's state has %d octets or an unknown version", boltfile.ErrDamaged, len(b))
	case size == logStateSize && binary.BigEndian.Uint64(b[unsummed:]) != sumOf(b[:unsummed]):
		return s, fmt.Errorf("%w: the log's state %x does not add up", boltfile.ErrDamaged, b)
	}
	s.size = binary.BigEndian.Uint64(b[1:])
	copy(s.root[:], b[9:])
	s.digest = digest(binary.BigEndian.Uint64(b[9+audit.HashSize:]))
	s.txid = binary.BigEndian.Uint64(b[17+audit.HashSize:])
	if s.counts = size >= unsummed; s.counts {
		s.heads = binary.BigEndian.Uint64(b[uncounted:])
	}
	return s, nil
}

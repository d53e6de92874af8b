package ledgerdb

import (
	"encoding/binary"
)

// LogStateSize is the length of the row that says where the log stands.
const LogStateSize = logStateSize

// SetLogTransaction names another transaction as the one that wrote that row.
func SetLogTransaction(state []byte, txid uint64) {
	binary.BigEndian.PutUint64(state[uncounted-8:], txid)
	binary.BigEndian.PutUint64(state[unsummed:], sumOf(state[:unsummed]))
}

// OldLogState is a state as programs of an older format, 1 or 2, wrote it.
func OldLogState(state []byte, version byte) []byte {
	old := append([]byte{version}, state[1:unsummed]...)
	if version == 1 {
		old = old[:uncounted]
	}
	return old
}

// BeginWithPages begins a ledger with pages of another size than the system's.
func BeginWithPages(path string, size int) error {
	f := form
	f.Options.PageSize, f.Grow = size, 0
	return f.Begin(path)
}

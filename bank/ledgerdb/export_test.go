package ledgerdb

import "encoding/binary"

// LogStateSize is the length of the row that says where the log stands.
const LogStateSize = logStateSize

// SetLogTransaction names another transaction as the one that wrote that row.
func SetLogTransaction(state []byte, txid uint64) {
	binary.BigEndian.PutUint64(state[uncounted-8:], txid)
}

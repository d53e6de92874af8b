package sold

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Old is what an early version of the program kept for each seller of a contract.
// Such rows stay as they are.
type Old struct {
	protocol.Sold
	Sellers int // of the contract, which has as many rows
}

// OldPrefix is what the keys of a seller's old rows begin with.
func OldPrefix(seller protocol.AgentID) string { return string(seller) + "\x00" }

// OldKey is the first key of a seller's old rows that end at or after an instant;
// they are in order of end, then of contract.
func OldKey(seller protocol.AgentID, ends time.Time) string {
	return string(row.Value(OldPrefix(seller)).Time(row.Nanos(ends)))
}

// DecodeOld reads an old row.
func DecodeOld(key string, value []byte) (Old, error) {
	const tail = 1 + 8 + 32
	if len(key) <= tail || key[len(key)-tail] != 0 {
		return Old{}, fmt.Errorf("sold: key of %d octets", len(key))
	}
	key = key[len(key)-tail+1:]
	var s Old
	s.Contract = protocol.ContractID(hex.EncodeToString([]byte(key[8:])))
	s.Ends = row.Instant(int64(binary.BigEndian.Uint64([]byte(key[:8])) &^ (1 << 63)))
	d := row.Read(value)
	s.Sellers = d.Count(protocol.MaxUnits)
	s.User, s.Conversation = d.Agent(), d.String(protocol.MaxConversation)
	for range d.Count(protocol.MaxUnits) {
		u := protocol.SoldUnit{Unit: d.Unit(), Reservation: d.String(protocol.MaxReservation)}
		u.Slot.Cores = d.Count(protocol.MaxCores)
		u.Slot.Start, u.Slot.End = row.Instant(d.Time()), row.Instant(d.Time())
		s.Units = append(s.Units, u)
	}
	return s, d.DoneWith("sold")
}

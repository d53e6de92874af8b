package ledger

import (
	"encoding/binary"
	"fmt"
	"time"

	"ramp/protocol"
)

// OldSold is a row of TableSold, in which a program of one day kept what Sale is
// now. Those rows stay as they are.
type OldSold struct {
	protocol.Sold
	sellers int // of the contract: it has so many rows
}

// OldSoldPrefix is what the keys of a seller's rows in TableSold begin with.
func OldSoldPrefix(seller protocol.AgentID) string { return string(seller) + "\x00" }

// OldSoldKey is the first key of a seller's rows in TableSold that end at or after
// an instant; they are in order of that, then of contract.
func OldSoldKey(seller protocol.AgentID, ends time.Time) string {
	return string(appendTime([]byte(OldSoldPrefix(seller)), nanos(ends)))
}

// DecodeOldSold reads a row of TableSold.
func DecodeOldSold(key string, value []byte) (OldSold, error) {
	const tail = 1 + 8 + len(contractKey{})
	if len(key) <= tail || key[len(key)-tail] != 0 {
		return OldSold{}, fmt.Errorf("sold: key of %d octets", len(key))
	}
	key = key[len(key)-tail+1:]
	var s OldSold
	s.Contract = contractKey([]byte(key[8:])).id()
	s.Ends = fromNanos(int64(binary.BigEndian.Uint64([]byte(key[:8])) &^ (1 << 63)))
	d := newDecoder(value)
	s.sellers = d.count(protocol.MaxUnits)
	s.User, s.Conversation = d.agent(), d.string(protocol.MaxConversation)
	for range d.count(protocol.MaxUnits) {
		u := protocol.SoldUnit{Unit: d.unit(), Reservation: d.string(protocol.MaxReservation)}
		u.Slot.Cores = d.count(protocol.MaxCores)
		u.Slot.Start, u.Slot.End = fromNanos(d.nanos()), fromNanos(d.nanos())
		s.Units = append(s.Units, u)
	}
	if err := d.done(); err != nil {
		return OldSold{}, fmt.Errorf("sold: %w", err)
	}
	return s, nil
}

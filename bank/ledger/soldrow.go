package ledger

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// soldFromKey is the key of the one row of TableSoldFrom: the number of the
// first entry whose sales are in TableSold. A ledger that is older than the table
// has none of before.
const soldFromKey = "from"

// Sold is a row of TableSold.
type Sold struct {
	protocol.Sold
	sellers int // of the contract: it has so many rows
}

// SoldPrefix is what the keys of a seller's rows in TableSold begin with.
func SoldPrefix(seller protocol.AgentID) string { return string(seller) + "\x00" }

// SoldKey is the key of a row of TableSold. Those of a seller are in order of
// their end, then of contract. Without a contract it is the first key of those
// that end at or after an instant. Errors: a contract that is no hash.
func SoldKey(seller protocol.AgentID, ends time.Time, id protocol.ContractID) (string, error) {
	if id == "" {
		return string(appendTime([]byte(SoldPrefix(seller)), nanos(ends))), nil
	}
	k, err := parseContract(id)
	return soldKey(seller, nanos(ends), k), err
}

func soldKey(seller protocol.AgentID, ends int64, k contractKey) string {
	return string(append(appendTime([]byte(SoldPrefix(seller)), ends), k[:]...))
}

// noteSold saves what every seller of a bundle promised in it.
func (c *change) noteSold(k contractKey, b *protocol.Bundle) {
	if !c.l.soldBegun {
		c.l.soldBegun = true
		c.put(TableSoldFrom, soldFromKey, encodeNumber(c.l.soldFrom))
	}
	sellers := sellersOf(b)
	for _, seller := range sellers {
		var ends int64
		for u := range unitsOf(b, seller) {
			ends = max(ends, nanos(u.Slot.End))
		}
		c.put(TableSold, soldKey(seller, ends, k), encodeSold(b, seller, len(sellers)))
	}
}

// sellersOf are the sellers of a bundle, in order of their first units.
func sellersOf(b *protocol.Bundle) []protocol.AgentID {
	list := make([]protocol.AgentID, 0, 4)
	for i := range b.Units {
		if !slices.Contains(list, b.Units[i].Seller) {
			list = append(list, b.Units[i].Seller)
		}
	}
	return list
}

// unitsOf are a seller's units of a bundle.
func unitsOf(b *protocol.Bundle, seller protocol.AgentID) iter.Seq[*protocol.BundleUnit] {
	return func(yield func(*protocol.BundleUnit) bool) {
		for i := range b.Units {
			if u := &b.Units[i]; u.Seller == seller && !yield(u) {
				return
			}
		}
	}
}

func encodeSold(b *protocol.Bundle, seller protocol.AgentID, sellers int) []byte {
	v := append(make([]byte, 0, 160), rowVersion)
	v = binary.AppendUvarint(v, uint64(sellers))
	v = appendString(v, string(b.User))
	v = appendString(v, b.Conversation)
	n := 0
	for range unitsOf(b, seller) {
		n++
	}
	v = binary.AppendUvarint(v, uint64(n))
	for u := range unitsOf(b, seller) {
		v = binary.AppendUvarint(v, uint64(u.Unit))
		v = appendString(v, u.Reservation)
		v = binary.AppendUvarint(v, uint64(u.Slot.Cores))
		v = appendTime(v, nanos(u.Slot.Start))
		v = appendTime(v, nanos(u.Slot.End))
	}
	return v
}

// DecodeSold reads a row of TableSold.
func DecodeSold(key string, value []byte) (Sold, error) {
	const tail = 1 + 8 + len(contractKey{})
	if len(key) <= tail || key[len(key)-tail] != 0 {
		return Sold{}, fmt.Errorf("sold: key of %d octets", len(key))
	}
	key = key[len(key)-tail+1:]
	var s Sold
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
		return Sold{}, fmt.Errorf("sold: %w", err)
	}
	return s, nil
}

// Live is the row without the units that have a row in TableRefunds: their money
// went back or was paid, and they are promised no more.
func (s Sold) Live(ended func(refundKey string) bool) protocol.Sold {
	k, _ := parseContract(s.Contract)
	live := s.Sold
	live.Units = slices.DeleteFunc(slices.Clone(s.Units), func(u protocol.SoldUnit) bool { return ended(refundKey(k, u.Unit)) })
	return live
}

func (l *Ledger) loadSoldFrom(_ string, value []byte) (err error) {
	l.soldFrom, err = DecodeNumber(value)
	l.soldBegun = true
	return err
}

// SoldIn lists what a seller promised in settled contracts that end at an instant
// or later, as Sold.Live, in order of end. It reads whole tables: a store that can
// seek does better.
func SoldIn(t protocol.Tables, seller protocol.AgentID, ends time.Time) ([]protocol.Sold, error) {
	over := map[string]bool{}
	err := t.Each(TableRefunds, func(key string, _ []byte) error {
		over[key] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	from, _ := SoldKey(seller, ends, "")
	var list []protocol.Sold
	err = t.Each(TableSold, func(key string, value []byte) error {
		if key < from || !strings.HasPrefix(key, SoldPrefix(seller)) {
			return nil
		}
		s, err := DecodeSold(key, value)
		list = append(list, s.Live(func(key string) bool { return over[key] }))
		return err
	})
	return list, err
}

// Package sold is how a ledger's tables keep what sellers promised, so that a seller
// that lost its journal can ask for it.
//
// A settled bundle is one Sale, whose key is the number of the entry that settled
// it: the table grows at its end, as the entries do. A second table finds a seller's
// sales. Ordered by seller alone, the sales of one moment would lie on as many pages
// of the disk as they have sellers. So that table is in blocks of entries: the block
// that grows fits into few pages, and a query reads each block once.
package sold

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Sale is what the sellers of a settled bundle promised.
type Sale struct {
	Conversation string
	Parts        []Part // one per seller, in order of its first unit
}

// Part is what one of them promised.
type Part struct {
	Seller protocol.AgentID
	Ends   time.Time // the last of its slots
	Units  []protocol.SoldUnit
}

// Of is the sale of a bundle.
func Of(b *protocol.Bundle) Sale {
	s := Sale{Conversation: b.Conversation, Parts: make([]Part, 0, 1)}
	for i := range b.Units {
		u := &b.Units[i]
		at := s.find(u.Seller)
		if at < 0 {
			at = len(s.Parts)
			s.Parts = append(s.Parts, Part{Seller: u.Seller, Units: make([]protocol.SoldUnit, 0, 1)})
		}
		p := &s.Parts[at]
		p.Ends = row.Instant(max(row.Nanos(p.Ends), row.Nanos(u.Slot.End)))
		p.Units = append(p.Units, protocol.SoldUnit{Unit: u.Unit, Reservation: u.Reservation, Slot: u.Slot})
	}
	return s
}

func (s *Sale) find(seller protocol.AgentID) int {
	return slices.IndexFunc(s.Parts, func(p Part) bool { return p.Seller == seller })
}

// By is the part of a seller.
func (s *Sale) By(seller protocol.AgentID) (p Part, ok bool) {
	if i := s.find(seller); i >= 0 {
		return s.Parts[i], true
	}
	return p, false
}

// Encode is the value of a sale; its key is the number of its entry.
func (s *Sale) Encode() []byte {
	v := row.New(row.Version, 128).String(s.Conversation).Count(len(s.Parts))
	for _, p := range s.Parts {
		v = v.Agent(p.Seller).Time(row.Nanos(p.Ends)).Count(len(p.Units))
		for _, u := range p.Units {
			start := row.Nanos(u.Slot.Start)
			v = v.Count(u.Unit).String(u.Reservation).Count(u.Slot.Cores).Time(start)
			v = v.Varint(row.Nanos(u.Slot.End) - start) // shorter than its end
		}
	}
	return v
}

// Decode reads a sale.
func Decode(key string, value []byte) (entry uint64, s Sale, err error) {
	if entry, err = row.Number64(key); err != nil {
		return 0, s, fmt.Errorf("sale: %w", err)
	}
	d := row.Read(value)
	s.Conversation = d.String(protocol.MaxConversation)
	for range d.Count(protocol.MaxUnits) {
		p := Part{Seller: d.Agent(), Ends: row.Instant(d.Time())}
		n := d.Count(protocol.MaxUnits)
		p.Units = make([]protocol.SoldUnit, 0, n)
		for range n {
			u := protocol.SoldUnit{Unit: d.Unit(), Reservation: d.String(protocol.MaxReservation)}
			u.Slot.Cores = d.Count(protocol.MaxCores)
			start := d.Time()
			u.Slot.Start, u.Slot.End = row.Instant(start), row.Instant(start+d.Varint())
			p.Units = append(p.Units, u)
		}
		s.Parts = append(s.Parts, p)
	}
	if err := d.Done(); err != nil {
		return 0, s, fmt.Errorf("sale of entry %d: %w", entry, err)
	}
	return entry, s, nil
}

// blockSize is the number of entries of a block.
const blockSize = 1 << 13

// Block is the block that an entry is in; blocks are numbered from zero without gaps.
func Block(entry uint64) uint32 { return uint32(entry / blockSize) }

const (
	prefixLen = 4 + 8
	keyLen    = prefixLen + 8 + 2
)

// Prefix is what the keys of a seller in a block begin with. Another seller's may
// begin so too: the sale tells.
func Prefix(block uint32, seller protocol.AgentID) string { return string(prefix(block, seller)) }

func prefix(block uint32, seller protocol.AgentID) row.Value {
	return row.Value(binary.BigEndian.AppendUint32(make([]byte, 0, keyLen), block)).Uint64(Hash(string(seller)))
}

// Key finds a sale by its seller. The keys of a seller in a block are in order of
// end, then of entry. An entry of an earlier block stands for the first of this
// one, and an entry of a later block for the last.
func Key(block uint32, seller protocol.AgentID, ends time.Time, entry uint64) string {
	first := uint64(block) * blockSize
	entry = min(max(entry, first), first+blockSize-1)
	return string(binary.BigEndian.AppendUint16(prefix(block, seller).Time(row.Nanos(ends)), uint16(entry-first)))
}

// DecodeKey reads when a sale ends, and its entry.
func DecodeKey(key string) (ends time.Time, entry uint64, err error) {
	if len(key) != keyLen {
		return ends, 0, fmt.Errorf("sold-by: key of %d octets, want %d", len(key), keyLen)
	}
	k := []byte(key)
	at := binary.BigEndian.Uint64(k[prefixLen:])
	entry = uint64(binary.BigEndian.Uint32(k))*blockSize + uint64(binary.BigEndian.Uint16(k[keyLen-2:]))
	return row.Instant(int64(at &^ (1 << 63))), entry, nil
}

// Hash is FNV-1a.
func Hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it cannot fail
	return h.Sum64()
}

package ledger

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"ramp/protocol"
)

// What sellers promised is kept so that one that lost its journal can ask. A
// bundle is one row of TableSales, which grows at its end as the entries do; whom
// it is for and when it ended are in the entry of the same number.
//
// TableSoldBy finds a seller's rows. In order of sellers alone it would have its
// bundles of one moment on as many pages of the disk as there are sellers. So it
// is in blocks of soldBlock entries: the block that grows fits into few pages, and
// who asks looks into each block once.

// soldBlock is the number of entries of a block of TableSoldBy.
const soldBlock = 1 << 13

// soldFromKey is the key of the one row of TableSoldFrom: the number of the
// first entry whose sales are kept. A ledger that is older than that has none of
// before.
const soldFromKey = "from"

// Sale is a row of TableSales: what the sellers of a settled bundle promised.
type Sale struct {
	Conversation string
	Parts        []SalePart // one per seller, in order of its first unit
}

// SalePart is what one of them did.
type SalePart struct {
	Seller protocol.AgentID
	Ends   time.Time // the last of its slots
	Units  []protocol.SoldUnit
}

// Of is what a seller promised in the bundle that an entry settled; the entry's
// legs must have been filled in. ok is false if it sold nothing in it.
func (s Sale) Of(seller protocol.AgentID, e Entry) (sold protocol.Sold, ok bool, err error) {
	i := slices.IndexFunc(s.Parts, func(p SalePart) bool { return p.Seller == seller })
	if i < 0 {
		return sold, false, nil
	}
	r, err := e.Receipt("")
	return protocol.Sold{
		Contract: e.Contract, User: r.User, Conversation: s.Conversation, Ends: s.Parts[i].Ends, Units: s.Parts[i].Units,
	}, true, err
}

// noteSold saves what every seller of a bundle promised in it.
func (c *change) noteSold(entry uint64, b *protocol.Bundle) {
	if !c.l.soldBegun {
		c.l.soldBegun = true
		c.put(TableSoldFrom, soldFromKey, encodeNumber(c.l.soldFrom))
	}
	s := saleOf(b)
	c.put(TableSales, NumberKey(entry), s.encode())
	for _, p := range s.Parts {
		c.put(TableSoldBy, SoldByKey(SoldBlock(entry), p.Seller, p.Ends, entry), []byte{rowVersion})
	}
}

func saleOf(b *protocol.Bundle) Sale {
	s := Sale{Conversation: b.Conversation, Parts: make([]SalePart, 0, 1)}
	for i := range b.Units {
		u := &b.Units[i]
		at := slices.IndexFunc(s.Parts, func(p SalePart) bool { return p.Seller == u.Seller })
		if at < 0 {
			at = len(s.Parts)
			s.Parts = append(s.Parts, SalePart{Seller: u.Seller, Units: make([]protocol.SoldUnit, 0, 1)})
		}
		p := &s.Parts[at]
		p.Ends = fromNanos(max(nanos(p.Ends), nanos(u.Slot.End)))
		p.Units = append(p.Units, protocol.SoldUnit{Unit: u.Unit, Reservation: u.Reservation, Slot: u.Slot})
	}
	return s
}

func (s *Sale) encode() []byte {
	v := append(make([]byte, 0, 128), rowVersion)
	v = appendString(v, s.Conversation)
	v = binary.AppendUvarint(v, uint64(len(s.Parts)))
	for _, p := range s.Parts {
		v = appendString(v, string(p.Seller))
		v = appendTime(v, nanos(p.Ends))
		v = appendUnits(v, p.Units)
	}
	return v
}

// appendUnits writes when a slot begins, and for how long it is, which is shorter.
func appendUnits(v []byte, units []protocol.SoldUnit) []byte {
	v = binary.AppendUvarint(v, uint64(len(units)))
	for _, u := range units {
		v = binary.AppendUvarint(v, uint64(u.Unit))
		v = appendString(v, u.Reservation)
		v = binary.AppendUvarint(v, uint64(u.Slot.Cores))
		v = appendTime(v, nanos(u.Slot.Start))
		v = binary.AppendVarint(v, nanos(u.Slot.End)-nanos(u.Slot.Start))
	}
	return v
}

// DecodeSale reads a row of TableSales.
func DecodeSale(key string, value []byte) (entry uint64, s Sale, err error) {
	if entry, err = key64(key); err != nil {
		return 0, s, fmt.Errorf("sale: %w", err)
	}
	d := newDecoder(value)
	s.Conversation = d.string(protocol.MaxConversation)
	for range d.count(protocol.MaxUnits) {
		p := SalePart{Seller: d.agent(), Ends: fromNanos(d.nanos())}
		p.Units = d.units()
		s.Parts = append(s.Parts, p)
	}
	if err := d.done(); err != nil {
		return 0, s, fmt.Errorf("sale of entry %d: %w", entry, err)
	}
	return entry, s, nil
}

func (d *decoder) units() []protocol.SoldUnit {
	n := d.count(protocol.MaxUnits)
	list := make([]protocol.SoldUnit, 0, n)
	for range n {
		u := protocol.SoldUnit{Unit: d.unit(), Reservation: d.string(protocol.MaxReservation)}
		u.Slot.Cores = d.count(protocol.MaxCores)
		start := d.nanos()
		u.Slot.Start, u.Slot.End = fromNanos(start), fromNanos(start+d.varint())
		list = append(list, u)
	}
	return list
}

func (d *decoder) varint() int64 { return int64(d.credits()) }

// SoldBlock is the block of TableSoldBy that an entry is in; blocks are numbered
// from zero without gaps.
func SoldBlock(entry uint64) uint32 { return uint32(entry / soldBlock) }

// SoldByPrefix is what the keys of a seller's rows in a block of TableSoldBy begin
// with. Others may begin so too: the row of TableSales says whose it is.
func SoldByPrefix(block uint32, seller protocol.AgentID) string {
	return string(appendSoldBy(make([]byte, 0, soldByPrefix), block, seller))
}

const (
	soldByPrefix = 4 + 8
	soldByLen    = soldByPrefix + 8 + 2
)

func appendSoldBy(k []byte, block uint32, seller protocol.AgentID) []byte {
	k = binary.BigEndian.AppendUint32(k, block)
	return binary.BigEndian.AppendUint64(k, hash64(string(seller)))
}

// SoldByKey is the key of a row of TableSoldBy. Those of a seller in a block are in
// order of their end, then of entry. An entry of an earlier block stands for the
// first of this one, and one of a later block for the last.
func SoldByKey(block uint32, seller protocol.AgentID, ends time.Time, entry uint64) string {
	first := uint64(block) * soldBlock
	entry = min(max(entry, first), first+soldBlock-1)
	k := appendTime(appendSoldBy(make([]byte, 0, soldByLen), block, seller), nanos(ends))
	return string(binary.BigEndian.AppendUint16(k, uint16(entry-first)))
}

// DecodeSoldBy reads a key of TableSoldBy: when a sale ends, and its entry.
func DecodeSoldBy(key string) (ends time.Time, entry uint64, err error) {
	if len(key) != soldByLen {
		return ends, 0, fmt.Errorf("sold-by: key of %d octets, want %d", len(key), soldByLen)
	}
	k := []byte(key)
	at := binary.BigEndian.Uint64(k[soldByPrefix:])
	entry = uint64(binary.BigEndian.Uint32(k))*soldBlock + uint64(binary.BigEndian.Uint16(k[soldByLen-2:]))
	return fromNanos(int64(at &^ (1 << 63))), entry, nil
}

// hash64 is FNV-1a.
func hash64(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it cannot fail
	return h.Sum64()
}

func (l *Ledger) loadSoldFrom(_ string, value []byte) (err error) {
	l.soldFrom, err = DecodeNumber(value)
	l.soldBegun = true
	return err
}

// Live is a sale without the units that have a row in TableRefunds: their money
// went back or was paid, and they are promised no more. Errors: a contract that is
// no hash.
func Live(s protocol.Sold, ended func(refundKey string) bool) (protocol.Sold, error) {
	k, err := parseContract(s.Contract)
	s.Units = slices.DeleteFunc(slices.Clone(s.Units), func(u protocol.SoldUnit) bool { return ended(refundKey(k, u.Unit)) })
	return s, err
}

package ledger

import (
	"cmp"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/bank/sold"
	"ramp/protocol"
)

// sales owns since when the store keeps what sellers promised: TableSales has the
// sales, and TableSoldBy finds those of a seller.
type sales struct {
	from  uint64 // first entry whose sales are kept; zero: all are
	begun bool   // and that is saved
}

// soldFromKey is the key of the one row of TableSoldFrom: the number of the first
// entry whose sales are kept. A ledger that is older has none of the time before.
const soldFromKey = "from"

// note saves what every seller of a bundle promised in it.
func (sl *sales) note(c *change, entry uint64, b *protocol.Bundle) {
	if !sl.begun {
		sl.begun = true
		c.put(TableSoldFrom, soldFromKey, encodeNumber(sl.from))
	}
	s := sold.Of(b)
	c.put(TableSales, NumberKey(entry), s.Encode())
	for _, p := range s.Parts {
		c.put(TableSoldBy, sold.Key(sold.Block(entry), p.Seller, p.Ends, entry), []byte{row.Version})
	}
}

func (sl *sales) load(_ string, value []byte) (err error) {
	sl.from, err = DecodeNumber(value)
	sl.begun = true
	return err
}

// Sold is what a seller promised in the bundle that an entry settled, whose legs
// must have been filled in. ok is false if it sold nothing in it.
func (e *Entry) Sold(s sold.Sale, seller protocol.AgentID) (found protocol.Sold, ok bool, err error) {
	p, ok := s.By(seller)
	if !ok {
		return found, false, nil
	}
	r, err := e.Receipt("")
	return protocol.Sold{Contract: e.Contract, User: r.User, Conversation: s.Conversation, Ends: p.Ends, Units: p.Units}, true, err
}

// Live is a sale without the units that have a row in TableRefunds: they were refunded or paid, and
// nothing is promised any more. It fails if the contract is not a hash.
func Live(s protocol.Sold, ended func(refundKey string) bool) (protocol.Sold, error) {
	k, err := parseContract(s.Contract)
	s.Units = slices.DeleteFunc(slices.Clone(s.Units), func(u protocol.SoldUnit) bool { return ended(refundKey(k, u.Unit)) })
	return s, err
}

// SoldIn lists what a seller promised in settled contracts that end at an instant
// or later, as Live, in order of end, then of entry. It reads whole tables, and
// none of older programs: a store that can seek does better.
func SoldIn(t protocol.Tables, seller protocol.AgentID, ends time.Time) ([]protocol.Sold, error) {
	r := soldReader{seller: seller, ends: ends, over: map[string]bool{}, names: map[uint32]protocol.AgentID{}, sales: map[uint64]sold.Sale{}}
	err := t.Each(TableRefunds, func(key string, _ []byte) error {
		r.over[key] = true
		return nil
	})
	err = cmp.Or(err, t.Each(TableLines, r.line), t.Each(TableSales, r.sale), t.Each(TableEntries, r.entry))
	slices.SortStableFunc(r.list, func(x, y protocol.Sold) int { return x.Ends.Compare(y.Ends) })
	return r.list, err
}

type soldReader struct {
	seller protocol.AgentID
	ends   time.Time
	over   map[string]bool // units, by their key in TableRefunds
	names  map[uint32]protocol.AgentID
	sales  map[uint64]sold.Sale // the seller's
	list   []protocol.Sold
}

func (r *soldReader) line(key string, value []byte) error {
	n, err1 := row.Number32(key)
	id, _, err2 := DecodeLine(value)
	r.names[n] = id
	return cmp.Or(err1, err2)
}

func (r *soldReader) sale(key string, value []byte) error {
	n, s, err := sold.Decode(key, value)
	if slices.ContainsFunc(s.Parts, func(p sold.Part) bool { return p.Seller == r.seller && !p.Ends.Before(r.ends) }) {
		r.sales[n] = s
	}
	return err
}

func (r *soldReader) entry(key string, value []byte) error {
	n, err := row.Number64(key)
	s, ok := r.sales[n]
	if err != nil || !ok {
		return err
	}
	e, err := DecodeEntry(key, value)
	for i := range e.Legs {
		e.Legs[i].Account = r.names[e.Legs[i].Line]
	}
	if err != nil {
		return err
	}
	found, _, err := e.Sold(s, r.seller)
	if err != nil {
		return err
	}
	found, err = Live(found, func(key string) bool { return r.over[key] })
	r.list = append(r.list, found)
	return err
}

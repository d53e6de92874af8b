package ledger

import (
	"slices"
	"time"

	"ramp/protocol"
)

// SoldIn lists what a seller promised in settled contracts that end at an instant
// or later, as Live, in order of end, then of entry. It reads whole tables, and
// none of older programs: a store that can seek does better.
func SoldIn(t protocol.Tables, seller protocol.AgentID, ends time.Time) ([]protocol.Sold, error) {
	r := soldReader{seller: seller, ends: ends, over: map[string]bool{}, names: map[uint32]protocol.AgentID{}, sales: map[uint64]Sale{}}
	err := t.Each(TableRefunds, func(key string, _ []byte) error {
		r.over[key] = true
		return nil
	})
	err = first(err, t.Each(TableLines, r.line), t.Each(TableSales, r.sale), t.Each(TableEntries, r.entry))
	slices.SortStableFunc(r.list, func(x, y protocol.Sold) int { return x.Ends.Compare(y.Ends) })
	return r.list, err
}

// soldReader is what SoldIn has read.
type soldReader struct {
	seller protocol.AgentID
	ends   time.Time
	over   map[string]bool // units, by their key in TableRefunds
	names  map[uint32]protocol.AgentID
	sales  map[uint64]Sale // the seller's
	list   []protocol.Sold
}

func (r *soldReader) line(key string, value []byte) error {
	n, err1 := key32(key)
	id, _, err2 := DecodeLine(value)
	r.names[n] = id
	return first(err1, err2)
}

func (r *soldReader) sale(key string, value []byte) error {
	n, s, err := DecodeSale(key, value)
	if slices.ContainsFunc(s.Parts, func(p SalePart) bool { return p.Seller == r.seller && !p.Ends.Before(r.ends) }) {
		r.sales[n] = s
	}
	return err
}

func (r *soldReader) entry(key string, value []byte) error {
	n, err := key64(key)
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
	sold, _, err := s.Of(r.seller, e)
	if err != nil {
		return err
	}
	sold, err = Live(sold, func(key string) bool { return r.over[key] })
	r.list = append(r.list, sold)
	return err
}

package reserve

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
)

// archive moves a finished deal to the table of past deals.
func (p *Participant) archive(t *turn, d *deal) {
	at := d.finalAt()
	if at.IsZero() || t.now.Before(at) {
		return
	}
	sale := d.contract.sale
	id := string(sale.Verified.ID)
	past := pastDeal{
		d.saved(), savedSale{sale.Bundle, sale.Verified.DER, sale.DER, sale.Countersigned},
		savedReceipt{d.contract.receipt.Receipt, d.contract.receipt.DER},
	}
	p.past.add(t, protocol.Record{Table: TablePast, Key: pastKey(t.now, sale.Verified.ID), Value: encode(past)}, past)
	t.save(protocol.Record{Table: TableSales, Key: id})
	t.save(protocol.Record{Table: TableReceipts, Key: id})
	for _, c := range d.claims {
		delete(p.deals.claims, c.id)
	}
	delete(p.deals.contracts, sale.Verified.ID)
	d.claims, d.contract = nil, nil
	t.touch(d)
}

// past are the finished deals in the journal. Beyond the bound the oldest is deleted. They are
// read back only if the clock that finished them was ahead: their slots are not over then.
type past struct {
	rows   []pastRow // the oldest first
	bytes  int
	recent []recentDeal // likewise
}

// recentDeal is a deal that was archived lately, by the seller's own clock.
type recentDeal struct {
	at time.Time
	pastRow
	pastDeal
}

const (
	recentBytes = 2 << 20
	recentTime  = time.Hour // for which the batch system keeps their slots
)

type pastRow struct {
	key   string
	bytes int
}

const pastTime = "20060102T150405"

// pastKey begins with the time, so that rows are in order. Older versions used only the ID.
func pastKey(now time.Time, id protocol.ContractID) string {
	return now.UTC().Format(pastTime) + " " + string(id)
}

// PastContract returns the contract in a key of TablePast.
func PastContract(key string) string { return key[max(0, len(key)-contractDigits):] }

const contractDigits = 64 // of a contract's ID

func (ps *past) read(key string, value []byte, now time.Time) error {
	ps.keep(key, value)
	at, err := time.Parse(pastTime, key[:min(len(key), len(pastTime))])
	if err != nil || !at.After(now) {
		return nil // of an older version, or over
	}
	return decoding(func(_ string, d pastDeal) error {
		ps.recent = append(ps.recent, recentDeal{at, ps.rows[len(ps.rows)-1], d})
		return nil
	})(key, value)
}

func (ps *past) keep(key string, value []byte) {
	ps.rows = append(ps.rows, pastRow{key, len(key) + len(value)})
	ps.bytes += len(key) + len(value)
}

func (ps *past) add(t *turn, r protocol.Record, d pastDeal) {
	t.save(r)
	ps.keep(r.Key, r.Value)
	ps.recent = append(ps.recent, recentDeal{t.now, ps.rows[len(ps.rows)-1], d})
	size := 0
	for _, x := range ps.recent {
		size += x.bytes
	}
	for size > recentBytes {
		size -= ps.recent[0].bytes
		ps.recent = ps.recent[1:]
	}
	for ps.bytes > protocol.MaxPast || len(ps.rows) > MaxClaims {
		t.save(protocol.Record{Table: TablePast, Key: ps.rows[0].key})
		ps.bytes -= ps.rows[0].bytes
		ps.rows = ps.rows[1:]
	}
}

// recently reports whether a reservation is of a deal that was archived a short time ago.
func (ps *past) recently(now time.Time, reservation string) bool {
	return slices.ContainsFunc(ps.recent, func(x recentDeal) bool {
		return now.Before(x.at.Add(recentTime)) && slices.ContainsFunc(x.Deal.Claims, func(c savedClaim) bool { return c.ID == reservation })
	})
}

// back brings back the deals that were archived later than now: the clock was ahead.
func (p *Participant) back(t *turn) error {
	for n := len(p.past.recent) - 1; n >= 0 && t.now.Before(p.past.recent[n].at); n-- {
		x := p.past.recent[n]
		p.past.recent = p.past.recent[:n]
		key, id := dealKey{x.Deal.User, x.Deal.Conversation}, x.Deal.Contract
		if p.deals.byKey[key] != nil {
			continue // the conversation has another one since
		}
		t.save(protocol.Record{Table: TablePast, Key: x.key})
		p.past.rows = slices.DeleteFunc(p.past.rows, func(r pastRow) bool { return r.key == x.key })
		p.past.bytes -= x.bytes
		for _, c := range x.Deal.Claims {
			p.slots.book.Remove(c.ID)
		}
		if err := p.readDeal(x.Deal, map[protocol.ContractID]savedSale{id: x.Sale}, map[protocol.ContractID]savedReceipt{id: x.Receipt}, t.now); err != nil {
			return fmt.Errorf("journal: table %s: %s: %w", TablePast, x.key, err)
		}
		t.save(protocol.Record{Table: TableSales, Key: string(id), Value: encode(x.Sale)})
		t.save(protocol.Record{Table: TableReceipts, Key: string(id), Value: encode(x.Receipt)})
		t.touch(p.deals.byKey[key])
	}
	return nil
}

package reserve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	p.past.add(t, protocol.Record{Table: TablePast, Key: pastKey(t.now, sale.Verified.ID), Value: encode(past)})
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
	fresh  int          // bytes of recent
}

// recentDeal is a deal that was archived lately, by the seller's own clock.
type recentDeal struct {
	at time.Time
	pastRow
	value []byte
}

const (
	recentBytes = 4 << 20   // beyond it the oldest are not brought back
	recentTime  = time.Hour // for which the batch system keeps their slots; later they are made again
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

func (ps *past) read(key string, value []byte) error {
	at, _ := time.Parse(pastTime, key[:min(len(key), len(pastTime))]) // zero: of an older version
	ps.keep(at, key, bytes.Clone(value))
	return nil
}

func (ps *past) keep(at time.Time, key string, value []byte) {
	row := pastRow{key, len(key) + len(value)}
	ps.rows, ps.bytes = append(ps.rows, row), ps.bytes+row.bytes
	ps.recent, ps.fresh = append(ps.recent, recentDeal{at, row, value}), ps.fresh+row.bytes
	for ps.fresh > recentBytes {
		ps.fresh -= ps.recent[0].bytes
		ps.recent = ps.recent[1:]
	}
}

func (ps *past) add(t *turn, r protocol.Record) {
	t.save(r)
	ps.keep(t.now, r.Key, r.Value)
	for ps.bytes > protocol.MaxPast || len(ps.rows) > MaxClaims {
		t.save(protocol.Record{Table: TablePast, Key: ps.rows[0].key})
		ps.bytes -= ps.rows[0].bytes
		ps.rows = ps.rows[1:]
	}
}

// recently reports whether a reservation is of a deal that was archived a short time ago.
func (ps *past) recently(now time.Time, reservation string) bool {
	name := []byte(strconv.Quote(reservation))
	return slices.ContainsFunc(ps.recent, func(x recentDeal) bool {
		return now.Before(x.at.Add(recentTime)) && bytes.Contains(x.value, name)
	})
}

// over reports whether a contract's deal is archived, and stays so: a bank lists it until the last
// slot has ended of all its sellers', also of a unit that was given back.
func (ps *past) over(now time.Time, s protocol.Sold) bool {
	return !slices.ContainsFunc(s.Units, func(u protocol.SoldUnit) bool { return u.Slot.End.Add(Retention).After(now) }) &&
		slices.ContainsFunc(ps.rows, func(r pastRow) bool { return PastContract(r.key) == string(s.Contract) })
}

// back brings deals back whose time to be archived has not come, because the clock was ahead.
func (p *Participant) back(t *turn) error {
	for _, x := range slices.Clone(p.past.recent) {
		var d pastDeal
		if json.Unmarshal(x.value, &d) != nil {
			continue // it is only evidence, which audits read
		}
		if err := p.unarchive(t, x, d); err != nil {
			return fmt.Errorf("journal: table %s: %s: %w", TablePast, x.key, err)
		}
	}
	return nil
}

func (p *Participant) unarchive(t *turn, x recentDeal, d pastDeal) error {
	key, id := dealKey{d.Deal.User, d.Deal.Conversation}, d.Deal.Contract
	over := func(c savedClaim) bool { return !c.Item.Slot.End.Add(Retention).After(t.now) }
	if p.deals.byKey[key] != nil || !slices.ContainsFunc(d.Deal.Claims, func(c savedClaim) bool { return c.State == ClaimSold && !over(c) }) {
		return nil
	}
	p.past.drop(t, x)
	for _, c := range d.Deal.Claims {
		p.slots.book.Remove(c.ID)
	}
	if err := p.readDeal(d.Deal, map[protocol.ContractID]savedSale{id: d.Sale}, map[protocol.ContractID]savedReceipt{id: d.Receipt}, t.now); err != nil {
		return err
	}
	t.save(protocol.Record{Table: TableSales, Key: string(id), Value: encode(d.Sale)})
	t.save(protocol.Record{Table: TableReceipts, Key: string(id), Value: encode(d.Receipt)})
	t.touch(p.deals.byKey[key])
	return nil
}

func (ps *past) drop(t *turn, x recentDeal) {
	t.save(protocol.Record{Table: TablePast, Key: x.key})
	ps.rows = slices.DeleteFunc(ps.rows, func(r pastRow) bool { return r.key == x.key })
	ps.recent = slices.DeleteFunc(ps.recent, func(r recentDeal) bool { return r.key == x.key })
	ps.bytes, ps.fresh = ps.bytes-x.bytes, ps.fresh-x.bytes
}

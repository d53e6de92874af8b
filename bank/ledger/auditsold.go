package ledger

import (
	"slices"

	"ramp/bank/row"
	"ramp/bank/sold"
)

// auditSold compares the sellers' promises with the entries. From the entry in TableSoldFrom on,
// each settlement has one row of TableSales, with a row of TableSoldBy for each seller; or, from an
// early version, one row of TableSold for each seller.
type auditSold struct {
	from    uint64
	begun   bool
	settled numbers // entries that settled
	sales   numbers // entries that have sales
	wanted  numbers // rows that TableSoldBy should have
	found   numbers // rows that it has
	old     []mark  // unit: number of rows that TableSold should have for the contract
}

// numbers stands for a set of numbers, in any order.
type numbers struct{ n, sum uint64 }

func (s *numbers) add(x uint64) {
	// The finisher of MurmurHash3, so that no two changes cancel each other.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	s.n, s.sum = s.n+1, s.sum+(x^x>>33)
}

func (a *auditor) soldFrom(_ string, value []byte) {
	from, err := DecodeNumber(value)
	if err != nil || a.sold.begun {
		a.bad("the first entry with reservations cannot be read (%v)", err)
	}
	a.sold.from, a.sold.begun = from, true
}

func (s *auditSold) settles(e *Entry) {
	if e.Kind.decides() && e.Kind != KindVoid && s.begun && e.Number >= s.from {
		s.settled.add(e.Number)
	}
}

func (a *auditor) saleRow(key string, value []byte) {
	entry, s, err := sold.Decode(key, value)
	if err != nil {
		a.bad("%s", err)
		return
	}
	a.sold.sales.add(entry)
	for _, p := range s.Parts {
		a.sold.wanted.add(sold.Hash(sold.Key(sold.Block(entry), p.Seller, p.Ends, entry)))
	}
}

func (a *auditor) soldByRow(key string, value []byte) {
	if len(value) != 1 || value[0] != row.Version {
		a.bad("sold-by: %x has a value of %d octets", key, len(value))
	}
	a.sold.found.add(sold.Hash(key))
}

func (a *auditor) oldSoldRow(key string, value []byte) {
	s, err := sold.DecodeOld(key, value)
	if err != nil {
		a.bad("%s", err)
		return
	}
	m := mark{unit: uint16(s.Sellers)}
	m.contract, _ = parseContract(s.Contract)
	a.sold.old = append(a.sold.old, m)
}

func (a *auditor) endSold() {
	a.endOldSold()
	switch s := &a.sold; {
	case s.sales != s.settled:
		a.bad("%d contracts were settled, but there are reservations of %d, or of others", s.settled.n, s.sales.n)
	case s.found != s.wanted:
		a.bad("%d rows find reservations, want %d, or others", s.found.n, s.wanted.n)
	}
}

// endOldSold counts a contract as sold if all its rows are there.
func (a *auditor) endOldSold() {
	rows := a.sold.old
	slices.SortFunc(rows, compareMarks)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && compareMarks(rows[n], rows[0]) == 0 {
			n++
		}
		entry, ok := a.entryOf(a.decided, string(rows[0].contract[:]), 0)
		if !ok || n != int(rows[0].unit) {
			a.bad("contract %x of entry %d has the reservations of %d sellers, want %d", rows[0].contract, entry, n, rows[0].unit)
		}
		a.sold.sales.add(entry)
		rows = rows[n:]
	}
}

package ledger

import "slices"

// auditSold compares TableSold with the entries: a contract that was settled has
// as many rows as sellers, from the entry on that TableSoldFrom names.
type auditSold struct {
	from    uint64
	begun   bool
	settled int    // decisions to settle, from there on
	rows    []mark // unit: how many rows the contract should have
}

func (a *auditor) soldFrom(_ string, value []byte) error {
	from, err := DecodeNumber(value)
	if err != nil || a.sold.begun {
		a.bad("since when there are reservations of contracts cannot be read (%v)", err)
	}
	a.sold.from, a.sold.begun = from, true
	return nil
}

// settles notes an entry that settled a contract.
func (s *auditSold) settles(e *Entry) {
	if e.Kind.decides() && e.Kind != KindVoid && s.begun && e.Number >= s.from {
		s.settled++
	}
}

func (a *auditor) soldRow(key string, value []byte) error {
	s, err := DecodeSold(key, value)
	if err != nil {
		a.bad("%s", err)
		return nil
	}
	m := mark{unit: uint16(s.sellers)}
	m.contract, _ = parseContract(s.Contract)
	a.sold.rows = append(a.sold.rows, m)
	return nil
}

func (a *auditor) endSold() {
	rows := a.sold.rows
	slices.SortFunc(rows, compareMarks)
	contracts := 0
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && compareMarks(rows[n], rows[0]) == 0 {
			n++
		}
		entry, ok := a.entryOf(a.decided, string(rows[0].contract[:]), 0)
		if !ok || n != int(rows[0].unit) || !a.sold.begun || entry < a.sold.from {
			a.bad("contract %x of entry %d has the reservations of %d sellers, should have those of %d", rows[0].contract, entry, n, rows[0].unit)
		}
		contracts++
		rows = rows[n:]
	}
	if contracts != a.sold.settled {
		a.bad("%d contracts were settled, the reservations of %d are there", a.sold.settled, contracts)
	}
}

package ledger

import (
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// move is a leg of an entry that is not written yet.
type move struct {
	line         *line
	amount, held protocol.Credits
}

type change struct {
	books *books
	recs  []protocol.Record
}

func (bk *books) change() *change { return &change{books: bk, recs: make([]protocol.Record, 0, 8)} }

func (c *change) put(table, key string, value []byte) {
	c.recs = append(c.recs, protocol.Record{Table: table, Key: key, Value: value})
}

func (c *change) drop(table, key string) {
	c.recs = append(c.recs, protocol.Record{Table: table, Key: key})
}

// write numbers and dates an entry, carries out its legs and saves what they changed, after the
// incomes that are due on their lines. The caller has checked the moves: write cannot fail.
func (c *change) write(now time.Time, e Entry, contract *contractKey, moves ...move) Entry {
	c.accrue(now, moves)
	return c.enter(now, e, contract, moves)
}

func (c *change) enter(now time.Time, e Entry, contract *contractKey, moves []move) Entry {
	s := &c.books.state
	s.Entry++
	s.time = max(s.time, row.Nanos(now))
	e.Number, e.Time = s.Entry, row.Instant(s.time)
	e.Legs = make([]Leg, 0, len(moves))
	for _, m := range moves {
		e.Legs = append(e.Legs, c.carry(m))
	}
	if sign := c.books.cfg.Sign; sign != nil && e.Act() {
		if contract != nil {
			e.Contract = contract.id()
		}
		e.Signature = sign(e.Octets(c.books.cfg.Bank))
	}
	c.put(TableEntries, NumberKey(e.Number), e.encode(contract))
	for _, m := range moves {
		c.note(m.line, e.Number)
	}
	c.put(TableState, StateKey, s.encode())
	return e
}

func (c *change) carry(m move) Leg {
	n := m.line
	n.balance += m.amount
	n.held += m.held
	c.books.sums[n.currency] += m.amount
	return Leg{Line: n.number, Account: n.account, Currency: n.currency, Amount: m.amount, Held: m.held, After: n.balance}
}

// note adds an entry to a line's latest ones, and saves the line. A full tail
// moves to the index, so that the index costs one write per tailLen entries.
// An entry with several legs on one line is noted once.
func (c *change) note(n *line, entry uint64) {
	if last := len(n.tail) - 1; last >= 0 && n.tail[last] == entry {
		return
	}
	if len(n.tail) == tailLen {
		b := row.New(row.Version, 64).Rising(n.tail)
		c.put(TableIndex, IndexKey(n.number, n.tail[tailLen-1]), b)
		n.tail = n.tail[:0]
	}
	n.tail = append(n.tail, entry)
	c.put(TableBalances, n.key, n.encodeBalance())
}

// line is an account's line in a currency, made if need be.
func (c *change) line(a *account, currency string) *line {
	if n := a.line(currency); n != nil {
		return n
	}
	n := c.books.newLine(a, currency)
	c.put(TableLines, n.key, n.encode())
	c.put(TableAccounts, string(a.id), a.encode())
	return n
}

// accrue posts the income that is due on the lines whose balance is about to move,
// against the issuer, one entry each.
func (c *change) accrue(now time.Time, moves []move) {
	for _, m := range moves {
		if m.amount != 0 && c.books.policies[m.line.currency].Kind == PolicyAllowance {
			c.realise(now, m.line)
		}
	}
}

func (c *change) realise(now time.Time, n *line) {
	if n.account == Issuer {
		return
	}
	at := c.books.instant(now)
	whole, residue := c.books.due(n, at)
	n.anchor, n.residue = max(n.anchor, at), residue
	if whole == 0 {
		return
	}
	issuer := c.line(c.issuer(now), n.currency)
	c.enter(now, Entry{Kind: KindIncome}, nil, []move{{line: issuer, amount: -whole}, {line: n, amount: whole}})
}

// issuer is the account that credit comes from, opened with its first.
func (c *change) issuer(now time.Time) *account {
	a := c.books.accounts[Issuer]
	if a == nil {
		a = &account{id: Issuer, name: "issuer", opened: row.Nanos(now)}
		c.books.accounts[Issuer] = a
	}
	return a
}

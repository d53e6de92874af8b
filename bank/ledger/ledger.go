package ledger

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Ledger is the live part of a bank's books. One goroutine owns it.
type Ledger struct {
	cfg       Config
	state     State
	graceEnds int64 // nothing expires before

	accounts  map[protocol.AgentID]*account
	lines     []*line // by number, from 1
	sums      map[string]protocol.Credits
	holds     map[uint64]*hold
	gathering map[contractKey]*gathering
	gathers   map[protocol.AgentID]int // undecided bundles per user
	deadlines deadlines

	outcomes archive
	recalled map[contractKey]*outcome
	absent   map[contractKey]uint64 // not in the store as of this entry
}

// account is an agent's name and its lines.
type account struct {
	id     protocol.AgentID
	name   string
	opened int64
	lines  []*line // in order of creation
}

func (a *account) line(currency string) *line {
	for _, n := range a.lines {
		if n.currency == currency {
			return n
		}
	}
	return nil
}

// line is an account's money in one currency.
type line struct {
	number    uint32
	key       string
	account   protocol.AgentID
	currency  string
	balance   protocol.Credits
	held      protocol.Credits
	overdraft protocol.Credits
	tail      []uint64 // latest entries, not yet in the index
}

// available is balance + overdraft − held. Balance − held fits, because nothing
// was held or paid that the overdraft of its time did not cover; what then
// exceeds 63 bits is as good as the most.
func (n *line) available() protocol.Credits {
	if n == nil {
		return 0
	}
	sum, err := (n.balance - n.held).Add(n.overdraft)
	if err != nil {
		return protocol.MaxCredits
	}
	return sum
}

// move is a leg that has not happened yet.
type move struct {
	line         *line
	amount, held protocol.Credits
}

// change collects the records of one decision.
type change struct {
	l    *Ledger
	recs []protocol.Record
}

func (l *Ledger) change() *change {
	return &change{l: l, recs: make([]protocol.Record, 0, 8)}
}

func (c *change) put(table, key string, value []byte) {
	c.recs = append(c.recs, protocol.Record{Table: table, Key: key, Value: value})
}

func (c *change) drop(table, key string) {
	c.recs = append(c.recs, protocol.Record{Table: table, Key: key})
}

// write numbers and dates an entry, carries its legs out and saves all that it
// changed. The moves must have been checked: write cannot fail.
func (c *change) write(now time.Time, e Entry, contract *contractKey, moves ...move) Entry {
	s := &c.l.state
	s.Entry++
	s.time = max(s.time, nanos(now))
	e.Number, e.Time = s.Entry, fromNanos(s.time)
	e.Legs = make([]Leg, 0, len(moves))
	for _, m := range moves {
		e.Legs = append(e.Legs, c.carry(m))
	}
	c.put(TableEntries, NumberKey(e.Number), e.encode(contract))
	for i, m := range moves {
		if !movedBefore(moves[:i], m.line) {
			c.note(m.line, e.Number)
		}
	}
	c.put(TableState, StateKey, s.encode())
	return e
}

// movedBefore: a user that buys from itself has two legs on one line.
func movedBefore(moves []move, n *line) bool {
	return len(moves) > 0 && moves[0].line == n
}

func (c *change) carry(m move) Leg {
	n := m.line
	n.balance += m.amount
	n.held += m.held
	c.l.sums[n.currency] += m.amount
	return Leg{Line: n.number, Account: n.account, Currency: n.currency, Amount: m.amount, Held: m.held, After: n.balance}
}

// note adds an entry to a line's latest ones, and saves the line. A full tail
// moves to the index, so that the index costs one write per tailLen entries.
func (c *change) note(n *line, entry uint64) {
	if len(n.tail) == tailLen {
		b := appendNumbers([]byte{rowVersion}, n.tail)
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
	n := c.l.newLine(a, currency)
	c.put(TableLines, n.key, n.encode())
	c.put(TableAccounts, string(a.id), a.encode())
	return n
}

func (l *Ledger) newLine(a *account, currency string) *line {
	number := uint32(len(l.lines) + 1)
	n := &line{number: number, key: lineKey(number), account: a.id, currency: currency}
	l.lines = append(l.lines, n)
	a.lines = append(a.lines, n)
	return n
}

// knows reports whether the bank keeps accounts in a currency.
func (l *Ledger) knows(currency string) bool { return slices.Contains(l.cfg.Currencies, currency) }

// Bank is whose ledger it is.
func (l *Ledger) Bank() protocol.AgentID { return l.cfg.Bank }

// LastEntry is the number of the last entry; zero: none yet.
func (l *Ledger) LastEntry() uint64 { return l.state.Entry }

// Sum is the sum of all balances per currency, issuer included: zero, if the
// ledger is right. It is kept as legs are carried out, each by itself.
func (l *Ledger) Sum() map[string]protocol.Credits {
	sums := make(map[string]protocol.Credits, len(l.sums))
	for currency, sum := range l.sums {
		sums[currency] = sum
	}
	return sums
}

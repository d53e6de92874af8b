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

	policies map[string]Policy
	groups   map[string]*group
	memberOf map[protocol.AgentID]*group
	sellsFor map[protocol.AgentID]*group // clusters
	deals    map[dealKey]uint64          // hold of a unit
	vouchers map[voucherKey]uint64       // hold of a voucher
	vouched  map[protocol.AgentID]int    // open vouchers per user
	rates    map[pair]protocol.Credits
	quotes   map[quoteKey]Quote
	quoted   map[protocol.AgentID]quoteCount
	recovery bool
	backup   int64 // when the last entry before recovery was made

	soldFrom  uint64 // first entry whose sales are kept; zero: all are
	soldBegun bool   // and that is saved

	invitations map[TokenHash]*invited
	enrolled    map[string]Enrolment // by the key's fingerprint

	outcomes archive
	recalled map[contractKey]*outcome
	absent   map[contractKey]uint64 // not in the store as of this entry
}

// account is an agent's name and its lines.
type account struct {
	id     protocol.AgentID
	name   string
	opened int64
	frozen bool
	closed bool
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

	// Of currencies with an allowance.
	income  protocol.Credits // per day
	anchor  int64            // when balance and residue were right; zero: never moved
	residue uint64           // 2⁻⁶⁴ micro-credits beyond balance
}

// available is balance + overdraft − held, and what is due of an income.
// Balance − held fits, because nothing was held or paid that the overdraft of
// its time did not cover; what then exceeds 63 bits is as good as the most.
func (l *Ledger) available(now time.Time, n *line) protocol.Credits {
	if n == nil {
		return 0
	}
	have, err := n.balance.Add(-n.held)
	if err != nil { // decay has eaten what an old overdraft covered
		return -protocol.MaxCredits
	}
	whole, _ := l.due(n, l.instant(now))
	if have, err = have.Add(whole); err != nil {
		return -protocol.MaxCredits
	}
	if have, err = have.Add(n.overdraft); err != nil {
		return protocol.MaxCredits
	}
	return have
}

// instant is the time that an entry made now would have: never before the last.
func (l *Ledger) instant(now time.Time) int64 { return max(l.state.time, nanos(now)) }

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
// changed; incomes that are due on its lines are posted first. The moves must
// have been checked: write cannot fail.
func (c *change) write(now time.Time, e Entry, contract *contractKey, moves ...move) Entry {
	c.accrue(now, moves)
	return c.enter(now, e, contract, moves)
}

func (c *change) enter(now time.Time, e Entry, contract *contractKey, moves []move) Entry {
	s := &c.l.state
	s.Entry++
	s.time = max(s.time, nanos(now))
	e.Number, e.Time = s.Entry, fromNanos(s.time)
	e.Legs = make([]Leg, 0, len(moves))
	for _, m := range moves {
		e.Legs = append(e.Legs, c.carry(m))
	}
	if sign := c.l.cfg.Sign; sign != nil && e.Act() {
		if contract != nil {
			e.Contract = contract.id()
		}
		e.Signature = sign(e.Octets(c.l.cfg.Bank))
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
	c.l.sums[n.currency] += m.amount
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

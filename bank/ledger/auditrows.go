package ledger

import (
	"encoding/binary"
	"slices"

	"ramp/bank/row"
	"ramp/protocol"
)

// entry carries an entry out on the audited lines.
func (a *auditor) entry(key string, value []byte) {
	e, err := DecodeEntry(key, value)
	a.report.Entries++
	if err != nil {
		a.bad("%s", err)
		return
	}
	if e.Number != a.report.Entries {
		a.bad("entry %d follows entry %d", e.Number, a.report.Entries-1)
		a.report.Entries = e.Number
	}
	if at := row.Nanos(e.Time); at < a.time {
		a.bad("entry %d is older than the one before it", e.Number)
	} else {
		a.time = at
	}
	a.name(&e)
	a.followIncomes(&e)
	a.carry(&e)
	a.mark(&e, value)
	a.sold.settles(&e)
	a.followHold(&e)
	a.followAct(&e)
	a.followOrder(&e)
}

func (a *auditor) name(e *Entry) {
	for i := range e.Legs {
		if l := a.lines[e.Legs[i].Line]; l != nil {
			e.Legs[i].Account, e.Legs[i].Currency = l.account, l.currency
		}
	}
}

// carry checks that an entry's legs sum to zero in each currency, fit, and lead to the
// balances in it.
func (a *auditor) carry(e *Entry) {
	sums := make(map[string]protocol.Credits, 1)
	for _, leg := range e.Legs {
		l := a.lines[leg.Line]
		if l == nil {
			a.bad("entry %d: there is no line %d", e.Number, leg.Line)
			continue
		}
		var err1, err2, err3 error
		l.balance, err1 = l.balance.Add(leg.Amount)
		l.held, err2 = l.held.Add(leg.Held)
		sums[l.currency], err3 = sums[l.currency].Add(leg.Amount)
		if err1 != nil || err2 != nil || err3 != nil || l.held < 0 {
			a.bad("entry %d: %s of %s does not fit", e.Number, l.account, leg.Amount)
		}
		if leg.After != l.balance {
			a.bad("entry %d: %s should have %s after it, not %s", e.Number, l.account, l.balance, leg.After)
			l.balance = leg.After
		}
		if l.trail.last != e.Number {
			l.trail.add(e.Number)
		}
	}
	for currency, sum := range sums {
		if sum != 0 {
			a.bad("entry %d sums to %s %s, not to zero", e.Number, sum, currency)
		}
	}
}

// mark notes the contract or unit that an entry decided, for the tables of outcomes.
func (a *auditor) mark(e *Entry, value []byte) {
	if !e.Kind.decides() && !e.Kind.endsUnit() {
		return
	}
	m := mark{entry: e.Number, unit: uint16(e.Unit)}
	copy(m.contract[:], value[contractAt:])
	if e.Kind.endsUnit() {
		a.refunds = append(a.refunds, m)
	} else {
		a.decided = append(a.decided, m)
	}
}

// contractAt is where a contract begins in the value of an entry: behind the
// version, the kind and the time.
const contractAt = 1 + 1 + 8

func (a *auditor) balance(key string, value []byte) {
	n, err := row.Number32(key)
	l := a.lines[n]
	if err != nil || l == nil {
		a.bad("balance of line %x: there is no such line", key)
		return
	}
	var row line
	if err := row.decodeBalance(value); err != nil {
		a.bad("line %d: %s", n, err)
		return
	}
	l.row, l.tail = true, row.tail
	switch {
	case row.balance != l.balance:
		a.bad("%s has %s %s, by its entries it should have %s", l.account, row.balance, l.currency, l.balance)
	case row.overdraft != l.overdraft:
		a.bad("%s may overdraw by %s %s, by its entries by %s", l.account, row.overdraft, l.currency, l.overdraft)
	case row.anchor != l.anchor || row.residue != l.residue:
		a.bad("the income of %s in %s does not follow from its entries", l.account, l.currency)
	}
}

// hold compares an open hold with its entry. R = B − holds, because on both sides the
// amount held is the sum of the open holds.
func (a *auditor) hold(key string, value []byte) {
	row, err := decodeHold(key, value)
	if err != nil {
		a.bad("%s", err)
		return
	}
	var stored openHold
	for i, n := range row.lines {
		stored = append(stored, openPart{n, row.parts[i].amount})
		if l := a.lines[n]; l != nil {
			l.held -= row.parts[i].amount
		}
	}
	if h, open := a.holds[row.number]; !open || !slices.Equal(h, stored) {
		a.bad("hold %d of %s does not follow from the entries", row.number, stored.amount())
	}
	delete(a.holds, row.number)
}

func (a *auditor) undecided(key string, value []byte) {
	if _, err := decodeGathering(value); err != nil {
		a.bad("contract %x: %s", key, err)
	}
	if _, ok := a.entryOf(a.decided, key, 0); ok {
		a.bad("contract %x is decided and undecided", key)
	}
}

// entryOf is the entry that decided a contract or refunded a unit of one.
func (a *auditor) entryOf(ms []mark, key string, unit uint16) (uint64, bool) {
	m := mark{unit: unit}
	copy(m.contract[:], key)
	i, ok := slices.BinarySearchFunc(ms, m, compareMarks)
	if !ok || len(key) != len(contractKey{}) {
		return 0, false
	}
	return ms[i].entry, true
}

func (a *auditor) outcome(key string, value []byte) {
	k, o, err := decodeOutcome(key, value)
	if err != nil {
		a.bad("%s", err)
		return
	}
	if n, ok := a.entryOf(a.decided, string(k[:]), 0); !ok || n != o.entry {
		a.bad("the outcome of contract %x differs from entry %d, or was not decided by it", k, o.entry)
	}
}

func (a *auditor) contract(key string, value []byte) {
	entry, err := DecodeNumber(value)
	if n, ok := a.entryOf(a.decided, key, 0); err != nil || !ok || n != entry {
		a.bad("contract %x: entry %d did not decide it", key, entry)
		return
	}
	a.contracts++
}

func (a *auditor) refund(key string, value []byte) {
	size := len(contractKey{})
	if len(key) != size+2 {
		a.bad("refund with a key of %d octets", len(key))
		return
	}
	entry, err := DecodeNumber(value)
	unit := binary.BigEndian.Uint16([]byte(key[size:]))
	if n, ok := a.entryOf(a.refunds, key[:size], unit); err != nil || !ok || n != entry {
		a.bad("contract %x: entry %d did not refund unit %d", key[:size], entry, unit)
		return
	}
	a.refunded++
}

func (a *auditor) index(key string, value []byte) {
	ns, err := DecodeIndex(value)
	if err != nil || len(key) != 12 || len(ns) == 0 || key[4:] != NumberKey(ns[len(ns)-1]) {
		a.bad("index %x cannot be read", key)
		return
	}
	n, _ := row.Number32(key[:4])
	l := a.lines[n]
	if l == nil {
		a.bad("index of line %d: there is no such line", n)
		return
	}
	for _, entry := range ns {
		l.indexed.add(entry)
	}
}

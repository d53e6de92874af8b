package ledger

import (
	"encoding/binary"

	"ramp/protocol"
)

// entry carries an entry out on the audited lines.
func (a *auditor) entry(key string, value []byte) error {
	e, err := DecodeEntry(key, value)
	a.report.Entries++
	if err != nil {
		a.bad("%s", err)
		return nil
	}
	if e.Number != a.report.Entries {
		a.bad("entry %d follows entry %d", e.Number, a.report.Entries-1)
		a.report.Entries = e.Number
	}
	if at := nanos(e.Time); at < a.time {
		a.bad("entry %d is older than the one before it", e.Number)
	} else {
		a.time = at
	}
	a.carry(&e)
	a.mark(&e, value)
	a.followHold(&e)
	return nil
}

// carry checks that an entry's legs sum to zero in each currency, fit, and lead
// to the balances that it says.
func (a *auditor) carry(e *Entry) {
	sums := make(map[string]protocol.Credits, 1)
	for i, leg := range e.Legs {
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
			a.bad("entry %d: %s should have %s after it, it says %s", e.Number, l.account, l.balance, leg.After)
			l.balance = leg.After
		}
		if i == 0 || e.Legs[0].Line != leg.Line {
			l.trail.add(e.Number)
		}
	}
	for currency, sum := range sums {
		if sum != 0 {
			a.bad("entry %d sums to %s %s, not to zero", e.Number, sum, currency)
		}
	}
}

// mark notes what an entry decided, to compare it with the tables of outcomes.
func (a *auditor) mark(e *Entry, value []byte) {
	if !e.Kind.hasContract() {
		return
	}
	m := mark{entry: e.Number, unit: uint16(e.Unit)}
	copy(m.contract[:], value[contractAt:])
	if e.Kind == KindRefund {
		a.refunds = append(a.refunds, m)
	} else {
		a.decided = append(a.decided, m)
	}
}

// contractAt is where a contract begins in the value of an entry: behind the
// version, the kind and the time.
const contractAt = 1 + 1 + 8

// followHold follows one step of a hold.
func (a *auditor) followHold(e *Entry) {
	switch e.Kind {
	case KindHold:
		if a.lastHold++; e.Hold != a.lastHold || len(e.Legs) != 1 || e.Legs[0].Held <= 0 || e.Legs[0].Amount != 0 {
			a.bad("entry %d: hold %d is not the next, or holds nothing", e.Number, e.Hold)
			return
		}
		a.holds[e.Hold] = openHold{e.Legs[0].Line, e.Legs[0].Held}
	case KindPost, KindVoidHold, KindExpire:
		h, open := a.holds[e.Hold]
		if !open || len(e.Legs) < 1 || e.Legs[0].Line != h.line || e.Legs[0].Held != -h.amount {
			a.bad("entry %d: %s of hold %d, which is not open as it says", e.Number, e.Kind, e.Hold)
		} else if paid := -e.Legs[0].Amount; paid < 0 || paid > h.amount {
			a.bad("entry %d: hold %d of %s paid %s", e.Number, e.Hold, h.amount, paid)
		}
		delete(a.holds, e.Hold)
	default:
		for _, leg := range e.Legs {
			if leg.Held != 0 {
				a.bad("entry %d: a %s holds %s", e.Number, e.Kind, leg.Held)
			}
		}
	}
}

func (a *auditor) balance(key string, value []byte) error {
	n, err := key32(key)
	l := a.lines[n]
	if err != nil || l == nil {
		a.bad("balance of line %x: there is no such line", key)
		return nil
	}
	balance, _, tail, err := DecodeBalance(value)
	if err != nil {
		a.bad("line %d: %s", n, err)
		return nil
	}
	l.row, l.tail = true, tail
	if balance != l.balance {
		a.bad("%s has %s %s, its entries make it %s", l.account, balance, l.currency, l.balance)
	}
	return nil
}

// hold compares an open hold with its entry. R = B − holds, because what is
// held is the sum of the open holds, on both sides.
func (a *auditor) hold(key string, value []byte) error {
	row, err := decodeHold(key, value)
	if err != nil {
		a.bad("%s", err)
		return nil
	}
	if h, open := a.holds[row.number]; !open || h != (openHold{row.line, row.amount}) {
		a.bad("hold %d of %s on line %d is not open as its entries say", row.number, row.amount, row.line)
	}
	delete(a.holds, row.number)
	if l := a.lines[row.line]; l != nil {
		l.held -= row.amount
	}
	return nil
}

func (a *auditor) undecided(key string, value []byte) error {
	if _, err := decodeGathering(value); err != nil {
		a.bad("contract %x: %s", key, err)
	}
	if _, ok := a.entryOf(a.decided, key, 0); ok {
		a.bad("contract %x is decided and undecided", key)
	}
	return nil
}

// entryOf is the entry that decided a contract or refunded a unit of one.
func (a *auditor) entryOf(ms []mark, key string, unit uint16) (uint64, bool) {
	m := mark{unit: unit}
	copy(m.contract[:], key)
	i, ok := findMark(ms, m)
	if !ok || len(key) != len(contractKey{}) {
		return 0, false
	}
	return ms[i].entry, true
}

func (a *auditor) outcome(key string, value []byte) error {
	k, o, err := decodeOutcome(key, value)
	if err != nil {
		a.bad("%s", err)
		return nil
	}
	if n, ok := a.entryOf(a.decided, string(k[:]), 0); !ok || n != o.entry {
		a.bad("the outcome of contract %x is not what entry %d decided", k, o.entry)
	}
	return nil
}

func (a *auditor) contract(key string, value []byte) error {
	entry, err := DecodeNumber(value)
	if n, ok := a.entryOf(a.decided, key, 0); err != nil || !ok || n != entry {
		a.bad("contract %x: entry %d did not decide it", key, entry)
		return nil
	}
	a.contracts++
	return nil
}

func (a *auditor) refund(key string, value []byte) error {
	size := len(contractKey{})
	if len(key) != size+2 {
		a.bad("refund with a key of %d octets", len(key))
		return nil
	}
	entry, err := DecodeNumber(value)
	unit := binary.BigEndian.Uint16([]byte(key[size:]))
	if n, ok := a.entryOf(a.refunds, key[:size], unit); err != nil || !ok || n != entry {
		a.bad("contract %x: entry %d did not refund unit %d", key[:size], entry, unit)
		return nil
	}
	a.refunded++
	return nil
}

func (a *auditor) index(key string, value []byte) error {
	ns, err := DecodeIndex(value)
	if err != nil || len(key) != 12 || len(ns) == 0 || key[4:] != NumberKey(ns[len(ns)-1]) {
		a.bad("index %x cannot be read", key)
		return nil
	}
	n, _ := key32(key[:4])
	l := a.lines[n]
	if l == nil {
		a.bad("index of line %d: there is no such line", n)
		return nil
	}
	for _, entry := range ns {
		l.indexed.add(entry)
	}
	return nil
}

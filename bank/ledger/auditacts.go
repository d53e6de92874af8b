package ledger

import (
	"ramp/bank/row"
	"ramp/protocol"
)

// followHold carries out the step of an entry on its holds.
func (a *auditor) followHold(e *Entry) {
	rest := e.Legs
	switch e.Kind {
	case KindHold:
		rest = a.openHold(e, e.Hold, rest, len(rest))
	case KindReserve:
		rest = a.followReserve(e)
	case KindPost, KindVoidHold, KindExpire, KindComplete:
		rest = a.endHold(e)
	case KindDraw:
		rest = a.followDraw(e)
	case KindUsage, KindDispute:
		if _, open := a.holds[e.Hold]; !open {
			a.bad("entry %d: %s of hold %d, which is not open", e.Number, e.Kind, e.Hold)
		}
	}
	for _, leg := range rest {
		if leg.Held != 0 {
			a.bad("entry %d: a %s holds %s", e.Number, e.Kind, leg.Held)
		}
	}
}

// openHold opens the next hold on the first n legs, and returns the other legs.
func (a *auditor) openHold(e *Entry, number uint64, legs []Leg, n int) []Leg {
	if a.lastHold++; number != a.lastHold || n < 1 || n > min(maxParts, len(legs)) {
		a.bad("entry %d: hold %d is not the next, or holds nothing", e.Number, number)
		return nil
	}
	var h openHold
	for _, leg := range legs[:n] {
		if leg.Held <= 0 || leg.Amount != 0 {
			a.bad("entry %d: hold %d is not the next, or holds nothing", e.Number, number)
		}
		h = append(h, openPart{leg.Line, leg.Held})
	}
	a.holds[number] = h
	return legs[n:]
}

// endHold ends a hold, whose legs come first. It pays at most the amount held; a void or
// an expiry pays nothing.
func (a *auditor) endHold(e *Entry) []Leg {
	h, ok := a.closeHold(e)
	if !ok {
		return nil
	}
	for i, p := range h {
		if paid := -e.Legs[i].Amount; paid < 0 || paid > p.amount {
			a.bad("entry %d: hold %d of %s paid %s", e.Number, e.Hold, p.amount, paid)
		}
	}
	paid := e.paid()
	if (e.Kind == KindVoidHold || e.Kind == KindExpire) && paid != 0 || e.Kind == KindComplete && paid != e.Total {
		a.bad("entry %d: a %s of hold %d paid %s", e.Number, e.Kind, e.Hold, paid)
	}
	return e.Legs[len(h):]
}

// closeHold removes an open hold; its parts are the first legs.
func (a *auditor) closeHold(e *Entry) (openHold, bool) {
	h, open := a.holds[e.Hold]
	delete(a.holds, e.Hold)
	ok := open && len(e.Legs) >= len(h)
	for i := 0; ok && i < len(h); i++ {
		ok = e.Legs[i].Line == h[i].line && e.Legs[i].Held == -h[i].amount
	}
	if !ok {
		a.bad("entry %d: %s of hold %d, which is not open with these amounts", e.Number, e.Kind, e.Hold)
	}
	return h, ok
}

// followDraw ends a voucher's hold by the payment of its bundle, which may be greater.
func (a *auditor) followDraw(e *Entry) []Leg {
	h, ok := a.closeHold(e)
	if !ok {
		return nil
	}
	return e.Legs[len(h):]
}

// followReserve ends the voucher's hold, if there is one, and opens the units' holds,
// whose sum is the total.
func (a *auditor) followReserve(e *Entry) []Leg {
	legs := e.Legs
	if e.Hold != 0 {
		h, ok := a.closeHold(e)
		if !ok {
			return nil
		}
		legs = legs[len(h):]
	}
	var sum protocol.Credits
	for _, u := range e.Units {
		legs = a.openHold(e, u.Hold, legs, u.Legs)
		sum += a.holds[u.Hold].amount()
	}
	if sum != e.Total || len(legs) != 0 {
		a.bad("entry %d: holds %s, not %s", e.Number, sum, e.Total)
	}
	return legs
}

// followAct carries out an act of the operator, and verifies it.
func (a *auditor) followAct(e *Entry) {
	if len(e.Legs) == 1 && a.lines[e.Legs[0].Line] != nil {
		a.followLimit(e, a.lines[e.Legs[0].Line])
	}
	if table := e.Kind.table(); table != "" {
		row := table + " " + e.Key
		delete(a.rows, row)
		if len(e.Value) > 0 {
			a.rows[row] = string(e.Value)
		}
	}
	if e.Kind == KindPolicy {
		p, err := DecodePolicy(e.Value)
		if err != nil {
			a.bad("entry %d: %s", e.Number, err)
		}
		a.policies[e.Key] = p
	}
	a.verifyAct(e)
}

func (a *auditor) followLimit(e *Entry, l *audited) {
	switch e.Kind {
	case KindOverdraft:
		limit, err := protocol.ParseCredits(e.Ref)
		if err != nil || limit < 0 {
			a.bad("entry %d: overdraft limit %q", e.Number, e.Ref)
		}
		l.overdraft = limit
	case KindAllowance:
		income, err := DecodeNumber(e.Value)
		if err != nil {
			a.bad("entry %d: income: %s", e.Number, err)
		}
		l.income = protocol.Credits(income)
	}
}

// order notes the key of an order; followOrder compares it with its entry.
func (a *auditor) order(key string, value []byte) {
	o, err := decodeOrder(key, value)
	switch {
	case err != nil:
		a.bad("%s", err)
	case a.keys[o.key]:
		a.bad("order %q was carried out twice, the second time by entry %d", o.key, o.entry)
	default:
		a.keys[o.key], a.orders[o.entry] = true, o
	}
}

func (a *auditor) followOrder(e *Entry) {
	o := a.orders[e.Number]
	if o == nil {
		return
	}
	delete(a.orders, e.Number)
	if !e.Act() || o.at != row.Nanos(e.Time) {
		a.bad("order %q: entry %d is a %s of another time, or no act of the operator", o.key, e.Number, e.Kind)
	}
}

func (a *auditor) verifyAct(e *Entry) {
	if !e.Act() && len(e.Signature) > 0 || e.Kind == KindComplete && !e.How.Known() && e.How != endCancelled {
		a.bad("entry %d: a %s %s must have no signature, or has an unknown end", e.Number, e.Kind, e.How)
	}
	if a.verify == nil || !e.Act() {
		return
	}
	if err := a.verify(e.Octets(a.stored.Bank), e.Signature); err != nil {
		a.bad("entry %d: signature of the %s: %s", e.Number, e.Kind, err)
		return
	}
	if len(e.Signature) > 0 { // earlier versions did not sign
		a.report.Signed++
	}
}

// followIncomes recomputes the income of every line whose balance moves: the entries
// before must have posted it.
func (a *auditor) followIncomes(e *Entry) {
	for _, leg := range e.Legs {
		l := a.lines[leg.Line]
		if l == nil || a.policies[l.currency].Kind != PolicyAllowance || l.account == Issuer {
			continue
		}
		if leg.Amount == 0 && e.Kind != KindAllowance {
			continue
		}
		at := row.Nanos(e.Time)
		whole, residue := l.due(a.policies[l.currency], at)
		posted := protocol.Credits(0)
		if e.Kind == KindIncome {
			posted = leg.Amount
		}
		if posted != whole {
			a.bad("entry %d: %s had %s %s due, and got %s", e.Number, l.account, whole, l.currency, posted)
		}
		l.anchor, l.residue = max(l.anchor, at), residue
	}
}

// setRow compares a table with the rows that the operator's acts set.
func (a *auditor) setRow(table string) func(key string, value []byte) {
	return func(key string, value []byte) {
		row := table + " " + key
		if a.rows[row] != string(value) {
			a.bad("%q differs from the operator's act", row)
		}
		delete(a.rows, row)
	}
}

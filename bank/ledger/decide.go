package ledger

import (
	"time"

	"ramp/protocol"
)

// decide settles a bundle whose copies are all there, or voids it because it
// cannot be paid. Accounts and funds are looked at here, and only here.
func (c *change) decide(now time.Time, k contractKey, g *gathering) protocol.Receipt {
	if reason := c.l.unpayable(g); reason != "" {
		return c.void(now, k, g, reason)
	}
	moves := make([]move, 0, 1+len(g.pays))
	moves = append(moves, move{line: c.line(c.l.accounts[g.user], g.currency), amount: -g.total})
	for _, p := range g.pays {
		moves = append(moves, move{line: c.line(c.l.accounts[p.To], g.currency), amount: p.Amount})
	}
	e := c.write(now, Entry{Kind: KindSettle}, &k, moves...)
	return c.close(k, g, &outcome{settled: true, entry: e.Number, time: nanos(e.Time), total: g.total})
}

// unpayable is why a bundle cannot be paid; empty: it can.
func (l *Ledger) unpayable(g *gathering) protocol.Code {
	user, err := l.find(g.user, g.currency)
	if err != nil {
		return protocol.CodeAccount
	}
	for _, p := range g.pays {
		if _, err := l.find(p.To, g.currency); err != nil {
			return protocol.CodeAccount
		}
	}
	if user.line(g.currency).available() < g.total {
		return protocol.CodeFunds
	}
	for _, p := range g.pays {
		if p.To != g.user && !fits(l.accounts[p.To].line(g.currency), p.Amount) {
			return protocol.CodeOverflow
		}
	}
	return ""
}

func (c *change) voidBundle(now time.Time, k contractKey, g *gathering, b *protocol.Bundle, reason protocol.Code) protocol.Receipt {
	if g == nil {
		g = newGathering(b)
	}
	return c.void(now, k, g, reason)
}

func (c *change) void(now time.Time, k contractKey, g *gathering, reason protocol.Code) protocol.Receipt {
	e := c.write(now, Entry{Kind: KindVoid, User: g.user, Currency: g.currency, Reason: reason}, &k)
	return c.close(k, g, &outcome{reason: reason, entry: e.Number, time: nanos(e.Time)})
}

// close files the outcome of a bundle, once per contract.
func (c *change) close(k contractKey, g *gathering, o *outcome) protocol.Receipt {
	if _, ok := c.l.gathering[k]; ok {
		delete(c.l.gathering, k)
		if c.l.gathers[g.user]--; c.l.gathers[g.user] == 0 {
			delete(c.l.gathers, g.user)
		}
		c.drop(TableGathering, string(k[:]))
		c.drop(TableCopies, string(k[:]))
	}
	o.user, o.currency, o.settleBy = g.user, g.currency, g.settleBy
	c.put(TableContracts, string(k[:]), encodeNumber(o.entry))
	c.remember(k, o)
	return c.l.receipt(k.id(), o)
}

// Refund pays one unit of a settled bundle back, because its seller asks: once
// per unit, and 0..cost of it. A unit that was refunded before gets the
// recorded answer.
func (l *Ledger) Refund(now time.Time, id protocol.ContractID, b protocol.Bundle, unit int, amount protocol.Credits, by protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.check(id, &b, by, false)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, _, err := l.known(now, k, &b)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o == nil || !o.settled {
		return protocol.Receipt{}, nil, refuse(protocol.CodeUnknown, "contract %s was not settled", id)
	}
	if o.refunded(unit) {
		return l.receipt(id, o), nil, nil
	}
	if err := l.mayRefund(&b, unit, amount, by); err != nil {
		return protocol.Receipt{}, nil, err
	}
	c := l.change()
	c.refund(now, k, o, unit, amount, by)
	return l.receipt(id, o), c.recs, nil
}

func (l *Ledger) mayRefund(b *protocol.Bundle, unit int, amount protocol.Credits, by protocol.AgentID) error {
	for _, u := range b.Units {
		if u.Unit != unit || u.Seller != by {
			continue
		}
		from, to := l.accounts[by].line(b.Currency), l.accounts[b.User].line(b.Currency)
		switch {
		case amount < 0 || amount > u.Cost:
			return refuse(protocol.CodeMismatch, "refund of %s: want 0..%s, the cost of unit %d", amount, u.Cost, unit)
		case from.available() < amount:
			return refuse(protocol.CodeFunds, "refund of %s: %s has %s available", amount, by, from.available())
		case by != b.User && !fits(to, amount):
			return refuse(protocol.CodeOverflow, "refund of %s to %s: %s", amount, b.User, protocol.ErrOverflow)
		}
		return nil
	}
	return refuse(protocol.CodeForbidden, "unit %d is not sold by %s", unit, by)
}

func (c *change) refund(now time.Time, k contractKey, o *outcome, unit int, amount protocol.Credits, by protocol.AgentID) {
	from := c.line(c.l.accounts[by], o.currency)
	to := c.line(c.l.accounts[o.user], o.currency)
	remembered := c.l.recalled[k] != o
	if !remembered { // the store's older answers lack this refund from now on
		c.l.state.floorEntry = c.l.state.Entry + 1
	}
	e := c.write(now, Entry{Kind: KindRefund, Unit: unit}, &k, move{line: from, amount: -amount}, move{line: to, amount: amount})
	o.refunds = append(o.refunds, protocol.Refund{Unit: unit, Amount: amount, Entry: e.Number, Time: e.Time})
	c.put(TableRefunds, refundKey(k, unit), encodeNumber(e.Number))
	if remembered {
		c.file(k, o)
	}
}

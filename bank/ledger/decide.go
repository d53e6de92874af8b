package ledger

import (
	"slices"
	"time"

	"ramp/protocol"
)

// decide settles a bundle whose copies are all there, or voids it because it
// cannot be paid. Accounts and funds are looked at here, and only here.
func (c *change) decide(now time.Time, k contractKey, g *gathering, b *protocol.Bundle) protocol.Receipt {
	p, err := c.l.plan(now, g, b)
	if err != nil {
		return c.void(now, k, g, codeOf(err))
	}
	return c.carryOut(now, k, g, b, p)
}

// plan is how a bundle is paid, or held.
type plan struct {
	voucher *hold    // whose money is used first
	units   [][]part // of each unit, if it is held
}

// plan is a Refusal if the bundle cannot be paid.
func (l *Ledger) plan(now time.Time, g *gathering, b *protocol.Bundle) (plan, error) {
	p := plan{voucher: l.voucherFor(now, b)}
	user, err := l.payer(g, p.voucher)
	if err != nil {
		return plan{}, err
	}
	for i := range b.Units {
		if _, err := l.earnings(b.Units[i].Seller, g.currency, b.Units[i].Cost); err != nil {
			return plan{}, err
		}
	}
	purse := newPurse(l, now, user, g.currency)
	if p.voucher != nil {
		purse.add(p.voucher.parts)
	}
	if b.Mode == protocol.ModeOnReservation {
		return p, l.mayPayNow(now, g, purse)
	}
	if err := l.roomForHolds(len(b.Units)); err != nil {
		return plan{}, err
	}
	for i := range b.Units {
		parts, err := purse.take(b.Units[i].Cost)
		if err != nil {
			return plan{}, err
		}
		p.units = append(p.units, parts)
	}
	return p, nil
}

// payer is the account that pays a bundle. A frozen one pays what a voucher holds
// for all of it: its sellers were promised that before.
func (l *Ledger) payer(g *gathering, voucher *hold) (*account, error) {
	if voucher != nil && voucher.amount() >= g.total {
		return l.find(g.user, g.currency)
	}
	return l.spender(g.user, g.currency)
}

func (l *Ledger) mayPayNow(now time.Time, g *gathering, purse *purse) error {
	if have := purse.available(); have < g.total {
		return refuse(protocol.CodeFunds, "bundle of %s: %s available", g.total, have)
	}
	for _, p := range g.pays {
		if p.To != g.user && !l.takes(now, l.accounts[p.To].line(g.currency), p.Amount) {
			return refuse(protocol.CodeOverflow, "payment of %s to %s: %s", p.Amount, p.To, protocol.ErrOverflow)
		}
	}
	return nil
}

// carryOut settles a bundle: it is paid now, or each unit is held.
func (c *change) carryOut(now time.Time, k contractKey, g *gathering, b *protocol.Bundle, p plan) protocol.Receipt {
	if b.Mode != protocol.ModeOnReservation {
		return c.reserve(now, k, g, b, p)
	}
	pay := move{line: c.line(c.l.accounts[g.user], g.currency), amount: -g.total}
	kind, number := KindSettle, uint64(0)
	if v := p.voucher; v != nil {
		kind, number, pay.held = KindDraw, v.number, -v.amount()
		c.closeHold(v)
	}
	moves := append(make([]move, 0, 1+len(g.pays)), pay)
	for _, q := range g.pays {
		moves = append(moves, move{line: c.line(c.l.accounts[q.To], g.currency), amount: q.Amount})
	}
	e := c.write(now, Entry{Kind: kind, Hold: number}, &k, moves...)
	c.noteSold(e.Number, b)
	return c.close(k, g, &outcome{settled: true, entry: e.Number, time: nanos(e.Time), total: g.total})
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
// per unit, and 0..cost of it. Of a unit that is held and not yet reported, the
// rest of its cost is the seller's fee. A unit that was refunded before gets the
// recorded answer.
func (l *Ledger) Refund(now time.Time, id protocol.ContractID, b protocol.Bundle, unit int, amount protocol.Credits, by protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.checkPayable(id, &b, by, false)
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
	if l.recovery {
		return protocol.Receipt{}, nil, l.recovering()
	}
	u, err := unitOf(&b, unit, amount, by)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o.mode != "" {
		return l.cancelDeal(now, k, o, u, amount)
	}
	if err := l.mayRefund(now, &b, amount, by); err != nil {
		return protocol.Receipt{}, nil, err
	}
	c := l.change()
	c.refund(now, k, o, unit, amount, by)
	return l.receipt(id, o), c.recs, nil
}

func unitOf(b *protocol.Bundle, unit int, amount protocol.Credits, by protocol.AgentID) (*protocol.BundleUnit, error) {
	i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == unit && u.Seller == by })
	if i < 0 {
		return nil, refuse(protocol.CodeForbidden, "unit %d is not sold by %s", unit+1, by)
	}
	if u := &b.Units[i]; amount < 0 || amount > u.Cost {
		return nil, refuse(protocol.CodeMismatch, "refund of %s: want 0..%s, the cost of unit %d", amount, u.Cost, unit+1)
	}
	return &b.Units[i], nil
}

func (l *Ledger) mayRefund(now time.Time, b *protocol.Bundle, amount protocol.Credits, by protocol.AgentID) error {
	seller, err := l.spender(by, b.Currency)
	if err != nil {
		return err
	}
	user, err := l.find(b.User, b.Currency)
	if err != nil {
		return err
	}
	switch have := max(0, l.available(now, seller.line(b.Currency))); { // nothing can be paid back by all
	case have < amount:
		return refuse(protocol.CodeFunds, "refund of %s: %s has %s available", amount, by, have)
	case by != b.User && !l.takes(now, user.line(b.Currency), amount):
		return refuse(protocol.CodeOverflow, "refund of %s to %s: %s", amount, b.User, protocol.ErrOverflow)
	}
	return nil
}

func (c *change) refund(now time.Time, k contractKey, o *outcome, unit int, amount protocol.Credits, by protocol.AgentID) {
	moves := []move{
		{line: c.line(c.l.accounts[by], o.currency), amount: -amount},
		{line: c.line(c.l.accounts[o.user], o.currency), amount: amount},
	}
	c.endUnit(now, k, o, Entry{Kind: KindRefund, Unit: unit}, moves)
}

// endUnit writes the last entry of a unit and adds it to the outcome, if memory
// has that; else the store's older answers lack it from now on.
func (c *change) endUnit(now time.Time, k contractKey, o *outcome, e Entry, moves []move) {
	c.accrue(now, moves) // so that the next entry is the unit's
	remembered := o != nil && c.l.recalled[k] != o
	if !remembered {
		c.l.state.floorEntry = c.l.state.Entry + 1
	}
	e = c.write(now, e, &k, moves...)
	c.put(TableRefunds, refundKey(k, e.Unit), encodeNumber(e.Number))
	if o == nil {
		return
	}
	r := protocol.Receipt{Refunds: o.refunds, Ends: o.ends}
	e.AddTo(&r)
	o.refunds, o.ends = r.Refunds, r.Ends
	if remembered {
		c.file(k, o)
	}
}

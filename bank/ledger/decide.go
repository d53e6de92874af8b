package ledger

import (
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// decide settles a bundle once all copies are there, or voids it because it cannot be
// paid, within its user's allowance. Nothing else checks its accounts and funds.
func (bs *bundles) decide(c *change, now time.Time, k contractKey, g *gathering, b *protocol.Bundle) (r protocol.Receipt, decided bool) {
	p, err := bs.plan(now, g, b)
	switch {
	case err == nil:
		return bs.carryOut(c, now, k, g, b, p), true
	case bs.mayVoid(now, g.user):
		return bs.void(c, now, k, g, codeOf(err)), true
	}
	return r, false
}

// plan says how a bundle is paid, or held.
type plan struct {
	voucher *hold    // its money is used first
	units   [][]part // parts of each unit's hold, if it is paid later
}

// plan is a Refusal if the bundle cannot be paid.
func (bs *bundles) plan(now time.Time, g *gathering, b *protocol.Bundle) (plan, error) {
	p := plan{voucher: bs.holds.voucher(now, b)}
	user, err := bs.payer(g, p.voucher)
	if err != nil {
		return plan{}, err
	}
	for i := range b.Units {
		if _, err := bs.groups.earnings(b.Units[i].Seller, g.currency, b.Units[i].Cost); err != nil {
			return plan{}, err
		}
	}
	purse := bs.groups.purse(now, user, g.currency)
	if p.voucher != nil {
		purse.add(p.voucher.parts)
	}
	if b.Mode == protocol.ModeOnReservation {
		return p, bs.mayPayNow(now, g, purse)
	}
	if err := bs.holds.room(len(b.Units)); err != nil {
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

// payer is the account that pays a bundle. A frozen account pays if a voucher covers all
// of it: the bank promised that to the sellers.
func (bs *bundles) payer(g *gathering, voucher *hold) (*account, error) {
	if voucher != nil && voucher.amount() >= g.total {
		return bs.books.find(g.user, g.currency)
	}
	return bs.books.spender(g.user, g.currency)
}

func (bs *bundles) mayPayNow(now time.Time, g *gathering, purse *purse) error {
	if have := purse.available(); have < g.total {
		return refuse(protocol.CodeFunds, "bundle of %s: %s available", g.total, have)
	}
	for _, p := range g.pays {
		if p.To != g.user && !bs.books.takes(now, bs.books.accounts[p.To].line(g.currency), p.Amount) {
			return refuse(protocol.CodeOverflow, "payment of %s to %s: %s", p.Amount, p.To, protocol.ErrOverflow)
		}
	}
	return nil
}

// carryOut settles a bundle: it pays now, or holds the cost of each unit.
func (bs *bundles) carryOut(c *change, now time.Time, k contractKey, g *gathering, b *protocol.Bundle, p plan) protocol.Receipt {
	if b.Mode != protocol.ModeOnReservation {
		return bs.reserve(c, now, k, g, b, p)
	}
	pay := move{line: c.line(bs.books.accounts[g.user], g.currency), amount: -g.total}
	kind, number := KindSettle, uint64(0)
	if v := p.voucher; v != nil {
		kind, number, pay.held = KindDraw, v.number, -v.amount()
		bs.holds.drop(c, v)
	}
	moves := append(make([]move, 0, 1+len(g.pays)), pay)
	for _, q := range g.pays {
		moves = append(moves, move{line: c.line(bs.books.accounts[q.To], g.currency), amount: q.Amount})
	}
	e := c.write(now, Entry{Kind: kind, Hold: number}, &k, moves...)
	if p.voucher != nil {
		bs.holds.rest(c, now, p.voucher, []part{{pay.line, g.total}})
	}
	bs.sales.note(c, e.Number, b)
	return bs.close(c, k, g, &outcome{settled: true, entry: e.Number, time: row.Nanos(e.Time), total: g.total})
}

func (bs *bundles) void(c *change, now time.Time, k contractKey, g *gathering, reason protocol.Code) protocol.Receipt {
	e := c.write(now, Entry{Kind: KindVoid, User: g.user, Currency: g.currency, Reason: reason}, &k)
	return bs.close(c, k, g, &outcome{reason: reason, entry: e.Number, time: row.Nanos(e.Time)})
}

// close files the outcome of a bundle, once per contract.
func (bs *bundles) close(c *change, k contractKey, g *gathering, o *outcome) protocol.Receipt {
	bs.drop(c, k, g)
	o.user, o.currency, o.settleBy = g.user, g.currency, g.settleBy
	c.put(TableContracts, string(k[:]), encodeNumber(o.entry))
	bs.outcomes.remember(c, k, o)
	return bs.outcomes.receipt(k.id(), o)
}

// drop forgets the copies of a bundle, if there are any.
func (bs *bundles) drop(c *change, k contractKey, g *gathering) {
	if _, ok := bs.byContract[k]; ok {
		delete(bs.byContract, k)
		if bs.perUser[g.user]--; bs.perUser[g.user] == 0 {
			delete(bs.perUser, g.user)
		}
		c.drop(TableGathering, string(k[:]))
		c.drop(TableCopies, string(k[:]))
	}
}

// Refund pays back 0..cost of one unit of a settled bundle, once, because its seller
// asks. If the unit is held and not yet reported, the rest of its cost is the seller's
// fee. A repeated request gets the recorded answer.
func (l *Ledger) Refund(now time.Time, id protocol.ContractID, b protocol.Bundle, unit int, amount protocol.Credits, by protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.bundles.checkPayable(id, &b, by, false)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, _, err := l.bundles.known(now, k, &b)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o == nil || !o.settled {
		return protocol.Receipt{}, nil, refuse(protocol.CodeUnknown, "contract %s was not settled", id)
	}
	if o.refunded(unit) {
		return l.outcomes.receipt(id, o), nil, nil
	}
	if l.recovery.on {
		return protocol.Receipt{}, nil, errRecovering
	}
	u, err := unitOf(&b, unit, amount, by)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o.mode != "" {
		return l.deals.cancel(now, k, o, u, amount)
	}
	if err := l.deals.mayRefund(now, &b, amount, by); err != nil {
		return protocol.Receipt{}, nil, err
	}
	c := l.books.change()
	l.deals.refund(c, now, k, o, unit, amount, by)
	return l.outcomes.receipt(id, o), c.recs, nil
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

func (ds *deals) mayRefund(now time.Time, b *protocol.Bundle, amount protocol.Credits, by protocol.AgentID) error {
	seller, err := ds.books.spender(by, b.Currency)
	if err != nil {
		return err
	}
	user, err := ds.books.find(b.User, b.Currency)
	if err != nil {
		return err
	}
	switch have := max(0, ds.books.available(now, seller.line(b.Currency))); { // anybody can pay back nothing
	case have < amount:
		return refuse(protocol.CodeFunds, "refund of %s: %s has %s available", amount, by, have)
	case by != b.User && !ds.books.takes(now, user.line(b.Currency), amount):
		return refuse(protocol.CodeOverflow, "refund of %s to %s: %s", amount, b.User, protocol.ErrOverflow)
	}
	return nil
}

func (ds *deals) refund(c *change, now time.Time, k contractKey, o *outcome, unit int, amount protocol.Credits, by protocol.AgentID) {
	moves := []move{
		{line: c.line(ds.books.accounts[by], o.currency), amount: -amount},
		{line: c.line(ds.books.accounts[o.user], o.currency), amount: amount},
	}
	ds.endUnit(c, now, k, o, Entry{Kind: KindRefund, Unit: unit}, moves)
}

// endUnit writes the last entry of a unit and adds it to the outcome, if memory has
// that; otherwise the store's older answers are out of date from now on.
func (ds *deals) endUnit(c *change, now time.Time, k contractKey, o *outcome, e Entry, moves []move) {
	c.accrue(now, moves) // so that the next entry is the unit's
	remembered := o != nil && ds.outcomes.recalled[k] != o
	if !remembered {
		ds.books.state.floorEntry = ds.books.state.Entry + 1
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
		ds.outcomes.file(c, k, o)
	}
}

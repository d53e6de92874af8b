package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// recoveryKey is the key of the one row of TableRecovery.
const recoveryKey = "recovery"

// recovery owns whether the bank recovers from a backup, and since when its books have a gap.
type recovery struct {
	on     bool
	backup int64 // when the last entry before recovery was made
}

// Recovering reports whether the bank was restored from a backup and has not left
// recovery. Until then it settles, voids and frees nothing, because it may have decided
// otherwise in the time that the backup lacks.
func (l *Ledger) Recovering() bool { return l.recovery.on }

// Backup is the time of the last entry that a bank in recovery still has, or 1970 if
// that is unknown: later decisions may be missing. Zero: the bank does not recover.
func (l *Ledger) Backup() time.Time {
	if !l.recovery.on {
		return time.Time{}
	}
	return time.Unix(0, max(l.recovery.backup, 1)).UTC()
}

// Latest is the time of the last entry, zero without one. No entry is dated before it:
// while a clock that was set back catches up, time stands still here.
func (l *Ledger) Latest() time.Time {
	if l.books.state.time == 0 {
		return time.Time{}
	}
	return time.Unix(0, l.books.state.time).UTC()
}

var errRecovering = refuse(protocol.CodeUnavailable, "the bank was restored from a backup and still recovers: it accepts only its own receipts")

func recoveryWords(on bool) string {
	if on {
		return "the bank is in recovery already"
	}
	return "the bank is not in recovery: there is nothing to end"
}

// SetRecovery begins or ends recovery, by an act of the operator.
func (l *Ledger) SetRecovery(now time.Time, on bool, ref string) (Entry, []protocol.Record, error) {
	if on == l.recovery.on {
		return Entry{}, nil, refuse(protocol.CodeMismatch, "%s", recoveryWords(on))
	}
	if err := checkRef(ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	l.recovery.on = on
	e := Entry{Kind: KindRecovery, Key: recoveryKey, Ref: ref}
	if on {
		l.recovery.backup = l.books.state.time
		e.Value = encodeNumber(uint64(l.recovery.backup))
	} else {
		l.deadlines.graceEnds = max(l.deadlines.graceEnds, row.Nanos(now.Add(l.books.cfg.Grace))) // who waited is heard before anything expires
	}
	return c.set(now, e), c.recs, nil
}

// load reads that the bank recovers. Rows of older versions lack the time.
func (rc *recovery) load(_ string, value []byte) error {
	rc.on = true
	if len(value) <= 1 {
		return nil
	}
	n, err := DecodeNumber(value)
	if err == nil && n > math.MaxInt64 {
		err = fmt.Errorf("recovery: since %d ns", n)
	}
	rc.backup = int64(n)
	return err
}

// Readmit accepts a receipt that this bank signed and no longer has, in recovery only. The caller
// has verified the bank's signature on the receipt and the user's on the bundle. The payment is
// repeated whatever the limits are now; a receipt that contradicts the bank's records is refused. A
// void contract needs no bundle: its sellers have freed their slots and keep the receipt only, but
// others may bring copies until settle-by, and all of them together would settle it.
func (l *Ledger) Readmit(now time.Time, id protocol.ContractID, b protocol.Bundle, r protocol.Receipt) (protocol.Receipt, []protocol.Record, error) {
	k, err := parseContract(id)
	if r.Outcome == protocol.OutcomeVoid && b.Version == 0 {
		b = protocol.Bundle{User: r.User, Currency: r.Currency, SettleBy: r.Time.Add(protocol.MaxSettleAhead)}
	} else if err == nil {
		k, err = l.bundles.check(id, &b, b.User, true)
	}
	if err == nil && r.Outcome == protocol.OutcomeSettled {
		err = l.bundles.payable(&b)
	}
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if err := l.bundles.mayReadmit(id, &b, &r); err != nil {
		return protocol.Receipt{}, nil, err
	}
	o := l.outcomes.recent(k)
	if o == nil && l.outcomes.forgotten(k, 0) {
		return protocol.Receipt{}, nil, ErrAskStore
	}
	if o == nil && l.bundles.lapsed(&b) {
		if r.Outcome == protocol.OutcomeSettled {
			return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "contract %s is void since its settle-by", id)
		}
		return l.bundles.lapsedReceipt(k, newGathering(&b)), nil, nil
	}
	c := l.books.change()
	if o == nil {
		if err := l.bundles.readmit(c, now, k, &b, &r); err != nil {
			return protocol.Receipt{}, nil, err
		}
		o = l.outcomes.recent(k)
	}
	if o.settled != (r.Outcome == protocol.OutcomeSettled) {
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "entry %[2]d decided contract %[1]s otherwise", id, o.entry)
	}
	l.deals.readmitEnds(c, now, k, o, &b, &r)
	return l.outcomes.receipt(id, o), c.recs, nil
}

func (bs *bundles) mayReadmit(id protocol.ContractID, b *protocol.Bundle, r *protocol.Receipt) error {
	mode := cmp.Or(r.Mode, protocol.ModeOnReservation)
	settled := r.Outcome == protocol.OutcomeSettled
	switch {
	case !bs.recovery.on:
		return refuse(protocol.CodeForbidden, "the bank is not in recovery: it has its records")
	case r.Bank != bs.books.cfg.Bank || r.Contract != id || r.User != b.User || r.Currency != b.Currency:
		return refuse(protocol.CodeMismatch, "the receipt belongs to another bundle")
	case !settled && r.Outcome != protocol.OutcomeVoid:
		return refuse(protocol.CodeMismatch, "a receipt with the outcome %s decides nothing", r.Outcome)
	case settled && (r.Total != b.Total || mode != b.Mode):
		return refuse(protocol.CodeMismatch, "the receipt has %s %s, the bundle %s %s", r.Total, mode, b.Total, b.Mode)
	}
	return nil
}

// readmit decides an unknown bundle as its receipt says.
func (bs *bundles) readmit(c *change, now time.Time, k contractKey, b *protocol.Bundle, r *protocol.Receipt) error {
	g := bs.byContract[k]
	if g == nil {
		g = newGathering(b)
	}
	if r.Outcome == protocol.OutcomeVoid {
		bs.void(c, now, k, g, r.Reason)
		return nil
	}
	if err := bs.mayForce(now, g, b); err != nil {
		return err
	}
	var p plan
	own := c.line(bs.books.accounts[g.user], g.currency) // a currency may be younger than the backup
	if b.Mode != protocol.ModeOnReservation {
		p = bs.forcedPlan(now, own, b)
	}
	bs.carryOut(c, now, k, g, b, p)
	return nil
}

// mayForce refuses only amounts that do not fit; limits do not count.
func (bs *bundles) mayForce(now time.Time, g *gathering, b *protocol.Bundle) error {
	user, err := bs.books.find(g.user, g.currency)
	if err != nil {
		return err
	}
	own := user.line(g.currency)
	if !fits(own, -g.total) || own != nil && own.held > protocol.MaxCredits-g.total {
		return refuse(protocol.CodeOverflow, "payment of %s by %s: %s", g.total, g.user, protocol.ErrOverflow)
	}
	for i := range b.Units {
		earned, err := bs.groups.earnings(b.Units[i].Seller, g.currency, b.Units[i].Cost)
		if err != nil {
			return err
		}
		for _, e := range earned {
			if !bs.books.takes(now, e.account.line(g.currency), g.total) {
				return refuse(protocol.CodeOverflow, "payment of %s to %s: %s", e.amount, e.account.id, protocol.ErrOverflow)
			}
		}
	}
	if b.Mode == protocol.ModeOnReservation {
		return nil
	}
	return bs.holds.room(len(b.Units))
}

// forcedPlan is a plan without limits: a cost that the user's purse does not cover comes
// from the user's own account.
func (bs *bundles) forcedPlan(now time.Time, own *line, b *protocol.Bundle) (p plan) {
	purse := bs.groups.purse(now, bs.books.accounts[b.User], b.Currency)
	for i := range b.Units {
		parts, err := purse.take(b.Units[i].Cost)
		if err != nil {
			parts = []part{{own, b.Units[i].Cost}}
		}
		p.units = append(p.units, parts)
	}
	return p
}

// readmitEnds repeats the refunds and ends of units that a receipt has and the bank
// lacks, in their order.
func (ds *deals) readmitEnds(c *change, now time.Time, k contractKey, o *outcome, b *protocol.Bundle, r *protocol.Receipt) {
	ends := slices.SortedFunc(slices.Values(r.Ends), func(x, y protocol.UnitEnd) int { return cmp.Compare(x.Entry, y.Entry) })
	for _, e := range ends {
		if h := ds.open[dealKey{k, e.Unit}]; h != nil {
			ds.readmitEnd(c, now, o, h, e.Paid, e.How)
		}
	}
	for _, f := range r.Refunds {
		u, err := unitIn(b, f.Unit)
		if err != nil || o.ended(f.Unit) || f.Amount > u.Cost {
			continue
		}
		if h := ds.open[dealKey{k, f.Unit}]; h != nil {
			ds.readmitEnd(c, now, o, h, u.Cost-f.Amount, endCancelled)
		} else if o.mode == "" && f.Amount >= 0 {
			ds.refund(c, now, k, o, f.Unit, f.Amount, u.Seller)
		}
	}
}

func (ds *deals) readmitEnd(c *change, now time.Time, o *outcome, h *hold, paid protocol.Credits, how protocol.End) {
	if earned, err := ds.mayEarn(now, h, min(paid, h.amount())); err == nil {
		ds.complete(c, now, o, h, min(paid, h.amount()), earned, how, "readmitted")
	}
}

func unitIn(b *protocol.Bundle, unit int) (*protocol.BundleUnit, error) {
	for i := range b.Units {
		if b.Units[i].Unit == unit {
			return &b.Units[i], nil
		}
	}
	return nil, refuse(protocol.CodeMismatch, "the bundle has no unit %d", unit+1)
}

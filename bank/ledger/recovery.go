package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ramp/protocol"
)

// recoveryKey is the key of the one row of TableRecovery.
const recoveryKey = "recovery"

// Recovering reports whether the bank was restored from a backup and has not
// left recovery: it settles, voids and frees nothing, because it may have
// decided otherwise in the time that the backup lacks.
func (l *Ledger) Recovering() bool { return l.recovery }

// Backup is when the last entry was made that a bank in recovery still has, or 1970 if
// that is not known: what it decided later may be missing. Zero: it does not recover.
func (l *Ledger) Backup() time.Time {
	if !l.recovery {
		return time.Time{}
	}
	return time.Unix(0, max(l.backup, 1)).UTC()
}

// Latest is the time of the last entry; zero: there is none. No entry is dated before
// it, so a clock that is set back stands still here until it has caught up.
func (l *Ledger) Latest() time.Time {
	if l.state.time == 0 {
		return time.Time{}
	}
	return time.Unix(0, l.state.time).UTC()
}

func (l *Ledger) recovering() error {
	return refuse(protocol.CodeUnavailable, "the bank was restored from a backup and still recovers: it only takes back its own receipts")
}

func recoveryWords(on bool) string {
	if on {
		return "the bank is in recovery already"
	}
	return "the bank is not in recovery: there is nothing to end"
}

// SetRecovery begins or ends recovery, by an act of the operator.
func (l *Ledger) SetRecovery(now time.Time, on bool, ref string) (Entry, []protocol.Record, error) {
	switch {
	case on == l.recovery:
		return Entry{}, nil, refuse(protocol.CodeMismatch, "%s", recoveryWords(on))
	case len(ref) > MaxRef:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	c := l.change()
	l.recovery = on
	e := Entry{Kind: KindRecovery, Key: recoveryKey, Ref: ref}
	if on {
		l.backup = l.state.time
		e.Value = encodeNumber(uint64(l.backup))
	} else {
		l.graceEnds = max(l.graceEnds, nanos(now.Add(l.cfg.Grace))) // who waited is heard before anything expires
	}
	return c.set(now, e), c.recs, nil
}

// loadRecovery reads that the bank recovers. Rows of older versions do not say from when.
func (l *Ledger) loadRecovery(_ string, value []byte) error {
	l.recovery = true
	if len(value) <= 1 {
		return nil
	}
	n, err := DecodeNumber(value)
	if err == nil && n > math.MaxInt64 {
		err = fmt.Errorf("recovery: since %d ns", n)
	}
	l.backup = int64(n)
	return err
}

// Readmit takes back a receipt that this bank signed and no longer has, in
// recovery only. The caller has verified the bank's signature on the receipt and
// the user's on the bundle. What was paid then is paid again here, whatever the
// limits say now; a receipt against what the bank does have is refused.
func (l *Ledger) Readmit(now time.Time, id protocol.ContractID, b protocol.Bundle, r protocol.Receipt) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.check(id, &b, b.User, true)
	if err == nil && r.Outcome == protocol.OutcomeSettled {
		err = l.payable(&b)
	}
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if err := l.mayReadmit(id, &b, &r); err != nil {
		return protocol.Receipt{}, nil, err
	}
	o := l.recent(k)
	if o == nil && l.forgotten(k, 0) {
		return protocol.Receipt{}, nil, ErrAskStore
	}
	c := l.change()
	if o == nil {
		if err := c.readmit(now, k, &b, &r); err != nil {
			return protocol.Receipt{}, nil, err
		}
		o = l.recent(k)
	}
	if o.settled != (r.Outcome == protocol.OutcomeSettled) {
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "contract %s is decided otherwise here, by entry %d", id, o.entry)
	}
	c.readmitEnds(now, k, o, &b, &r)
	return l.receipt(id, o), c.recs, nil
}

func (l *Ledger) mayReadmit(id protocol.ContractID, b *protocol.Bundle, r *protocol.Receipt) error {
	mode := r.Mode
	if mode == "" {
		mode = protocol.ModeOnReservation
	}
	settled := r.Outcome == protocol.OutcomeSettled
	switch {
	case !l.recovery:
		return refuse(protocol.CodeForbidden, "the bank does not recover: it has its records")
	case r.Bank != l.cfg.Bank || r.Contract != id || r.User != b.User || r.Currency != b.Currency:
		return refuse(protocol.CodeMismatch, "the receipt is not of this bundle")
	case !settled && r.Outcome != protocol.OutcomeVoid:
		return refuse(protocol.CodeMismatch, "a receipt that says %s decides nothing", r.Outcome)
	case settled && (r.Total != b.Total || mode != b.Mode):
		return refuse(protocol.CodeMismatch, "the receipt says %s %s, the bundle %s %s", r.Total, mode, b.Total, b.Mode)
	}
	return nil
}

// readmit decides an unknown bundle as its receipt says.
func (c *change) readmit(now time.Time, k contractKey, b *protocol.Bundle, r *protocol.Receipt) error {
	g := c.l.gathering[k]
	if g == nil {
		g = newGathering(b)
	}
	if r.Outcome == protocol.OutcomeVoid {
		c.void(now, k, g, r.Reason)
		return nil
	}
	if err := c.l.mayForce(now, g, b); err != nil {
		return err
	}
	var p plan
	own := c.line(c.l.accounts[g.user], g.currency) // a currency may be younger than the backup
	if b.Mode != protocol.ModeOnReservation {
		p = c.l.forcedPlan(now, own, b)
	}
	c.carryOut(now, k, g, b, p)
	return nil
}

// mayForce refuses only what does not fit: limits are not looked at.
func (l *Ledger) mayForce(now time.Time, g *gathering, b *protocol.Bundle) error {
	user, err := l.find(g.user, g.currency)
	if err != nil {
		return err
	}
	own := user.line(g.currency)
	if !fits(own, -g.total) || own != nil && own.held > protocol.MaxCredits-g.total {
		return refuse(protocol.CodeOverflow, "payment of %s by %s: %s", g.total, g.user, protocol.ErrOverflow)
	}
	for i := range b.Units {
		earned, err := l.earnings(b.Units[i].Seller, g.currency, b.Units[i].Cost)
		if err != nil {
			return err
		}
		for _, e := range earned {
			if !l.takes(now, e.account.line(g.currency), g.total) {
				return refuse(protocol.CodeOverflow, "payment of %s to %s: %s", e.amount, e.account.id, protocol.ErrOverflow)
			}
		}
	}
	if b.Mode == protocol.ModeOnReservation {
		return nil
	}
	return l.roomForHolds(len(b.Units))
}

// forcedPlan is a plan that does not look at limits: all of it comes from the
// user's own account where its purse has too little.
func (l *Ledger) forcedPlan(now time.Time, own *line, b *protocol.Bundle) (p plan) {
	purse := newPurse(l, now, l.accounts[b.User], b.Currency)
	for i := range b.Units {
		parts, err := purse.take(b.Units[i].Cost)
		if err != nil {
			parts = []part{{own, b.Units[i].Cost}}
		}
		p.units = append(p.units, parts)
	}
	return p
}

// readmitEnds repeats the refunds and ends of units that a receipt has and the
// bank lacks, in the order in which they were.
func (c *change) readmitEnds(now time.Time, k contractKey, o *outcome, b *protocol.Bundle, r *protocol.Receipt) {
	ends := slices.SortedFunc(slices.Values(r.Ends), func(x, y protocol.UnitEnd) int { return cmp.Compare(x.Entry, y.Entry) })
	for _, e := range ends {
		if h := c.l.holds[c.l.deals[dealKey{k, e.Unit}]]; h != nil {
			c.readmitEnd(now, o, h, e.Paid, e.How)
		}
	}
	for _, f := range r.Refunds {
		u, err := sold(b, f.Unit)
		if err != nil || o.ended(f.Unit) || f.Amount > u.Cost {
			continue
		}
		if h := c.l.holds[c.l.deals[dealKey{k, f.Unit}]]; h != nil {
			c.readmitEnd(now, o, h, u.Cost-f.Amount, endCancelled)
		} else if o.mode == "" && f.Amount >= 0 {
			c.refund(now, k, o, f.Unit, f.Amount, u.Seller)
		}
	}
}

func (c *change) readmitEnd(now time.Time, o *outcome, h *hold, paid protocol.Credits, how protocol.End) {
	if earned, err := c.l.mayEarn(now, h, min(paid, h.amount())); err == nil {
		c.complete(now, o, h, min(paid, h.amount()), earned, how, "readmitted")
	}
}

func sold(b *protocol.Bundle, unit int) (*protocol.BundleUnit, error) {
	for i := range b.Units {
		if b.Units[i].Unit == unit {
			return &b.Units[i], nil
		}
	}
	return nil, refuse(protocol.CodeMismatch, "the bundle has no unit %d", unit+1)
}

package ledger

import (
	"slices"
	"time"

	"ramp/protocol"
)

// dealKey names a unit of a bundle.
type dealKey struct {
	contract contractKey
	unit     int
}

// deal is a unit that is paid after the fact: what is held for it ends by its
// seller's report, by its cancellation, or because nobody says anything in time.
//
//	open ----failed, or nothing due---> freed
//	open ----succeeded----------------> paid                     (on-completion)
//	open ----a usage record-----------> filed                    (metered)
//	open ----the seller is silent-----> freed
//	filed ---the user countersigns, or is silent--> paid what is due, the rest freed
//	filed ---the user disputes--------> disputed
//	disputed --the operator arbitrates, or the user gives in--> paid fully, partly or not
type deal struct {
	key    dealKey
	user   protocol.AgentID
	seller protocol.AgentID
	mode   protocol.Mode
	stage  stage
	due    protocol.Credits // of filed and disputed
}

// stage is how far the report of a unit has come. The numbers are stored.
type stage byte

const (
	stageOpen     stage = 0
	stageFiled    stage = 1
	stageDisputed stage = 2
)

// never is the deadline of a hold that only people end.
const never = 1<<63 - 1

// endCancelled is how a held unit ends by its seller's agreement. Receipts show
// it as a refund.
const endCancelled protocol.End = "cancelled"

// reserve decides for a bundle and holds the cost of each unit.
func (c *change) reserve(now time.Time, k contractKey, g *gathering, b *protocol.Bundle, p plan) protocol.Receipt {
	e := Entry{Kind: KindReserve, User: g.user, Currency: g.currency, Mode: b.Mode, Total: g.total}
	var moves []move
	if p.voucher != nil {
		e.Hold = p.voucher.number
		c.closeHold(p.voucher)
		moves = p.voucher.free(0)
	}
	for i, parts := range p.units {
		u := &b.Units[i]
		h := &hold{parts: parts, until: nanos(later(u.Slot.End, b.SettleBy).Add(c.l.cfg.ReportWithin))}
		h.deal = &deal{key: dealKey{k, u.Unit}, user: b.User, seller: u.Seller, mode: b.Mode}
		c.openHold(h)
		e.Units = append(e.Units, HeldUnit{Unit: u.Unit, Hold: h.number, Legs: len(parts)})
		for _, q := range parts {
			moves = append(moves, move{line: q.line, held: q.amount})
		}
	}
	e = c.write(now, e, &k, moves...)
	c.noteSold(e.Number, b)
	return c.close(k, g, &outcome{settled: true, entry: e.Number, time: nanos(e.Time), total: g.total, mode: b.Mode})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// JobReport is what a seller says of a unit when its job has stopped. The caller
// has verified the signatures.
type JobReport struct {
	Unit    int
	Success bool           // on-completion: whether it is paid
	Usage   protocol.Usage // metered: what it used, whether it succeeded or not
	Agreed  bool           // metered: the user has countersigned this record
	Ref     string         // names the signed record
}

// Report takes the report of a unit's job from its seller. On completion it ends
// the hold; a metered one is filed, and waits DisputeWithin for its user. What
// was decided before is answered again.
func (l *Ledger) Report(now time.Time, id protocol.ContractID, b protocol.Bundle, by protocol.AgentID, r JobReport) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.checkPayable(id, &b, by, false)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	u, err := unitOf(&b, r.Unit, 0, by)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	due, err := r.due(&b, u)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, h, err := l.dealOf(k, r.Unit)
	if err != nil || h == nil {
		return l.receiptOr(id, o), nil, err
	}
	switch {
	case len(r.Ref) > MaxRef:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(r.Ref), MaxRef)
	case h.deal.stage != stageOpen && h.deal.due != due:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d: %s is due by the record that was filed, not %s", r.Unit+1, h.deal.due, due)
	case h.deal.stage == stageOpen && l.over(now, h):
		return protocol.Receipt{}, nil, refuse(protocol.CodeExpired, "unit %d: its report was due by %s", r.Unit+1, fromNanos(h.until).Format(time.RFC3339))
	}
	return l.conclude(now, o, h, due, r)
}

// conclude ends a hold by its report, or files that.
func (l *Ledger) conclude(now time.Time, o *outcome, h *hold, due protocol.Credits, r JobReport) (protocol.Receipt, []protocol.Record, error) {
	id := h.deal.key.contract.id()
	switch {
	case h.deal.mode == protocol.ModeOnCompletion && r.Success:
		return l.end(now, o, h, due, protocol.EndSucceeded, r.Ref)
	case h.deal.mode == protocol.ModeOnCompletion:
		return l.end(now, o, h, 0, protocol.EndFailed, r.Ref)
	case r.Agreed || due == 0 && h.deal.stage == stageOpen:
		return l.end(now, o, h, due, protocol.EndAgreed, r.Ref)
	case h.deal.stage != stageOpen:
		return l.receipt(id, o), nil, nil
	}
	c := l.change()
	h.deal.stage, h.deal.due, h.until, h.ref = stageFiled, due, l.instant(now)+int64(protocol.DisputeWithin), r.Ref
	l.awaitEnd(deadline{at: h.until, hold: h.number})
	c.restage(now, h, KindUsage, r.Ref)
	return l.receipt(id, o), c.recs, nil
}

func (c *change) restage(now time.Time, h *hold, kind Kind, ref string) {
	c.put(TableHolds, NumberKey(h.number), h.encode())
	k := h.deal.key.contract
	c.write(now, Entry{Kind: kind, Unit: h.deal.key.unit, Hold: h.number, Total: h.deal.due, Ref: ref}, &k)
}

// due is what a report makes due, at most the unit's cost.
func (r *JobReport) due(b *protocol.Bundle, u *protocol.BundleUnit) (protocol.Credits, error) {
	if b.Mode != protocol.ModeMetered {
		return u.Due(b.Mode, r.Success, r.Usage), nil
	}
	if err := r.Usage.Validate(); err != nil {
		return 0, refuse(protocol.CodeMalformed, "unit %d: %s", r.Unit+1, err)
	}
	if u.Slot.Cores > 0 && r.Usage.CPU/time.Duration(u.Slot.Cores) > r.Usage.Wall {
		return 0, refuse(protocol.CodeMismatch, "unit %d: %d cores cannot use %s in %s", r.Unit+1, u.Slot.Cores, r.Usage.CPU, r.Usage.Wall)
	}
	return u.Due(b.Mode, r.Success, r.Usage), nil
}

// Due is what a seller's report of its unit makes due by the terms of a bundle.
func Due(b protocol.Bundle, seller protocol.AgentID, r JobReport) (protocol.Credits, error) {
	u, err := unitOf(&b, r.Unit, 0, seller)
	if err != nil {
		return 0, err
	}
	return r.due(&b, u)
}

// Filed is the Ref of the usage record that a unit's seller has filed and that
// waits for its user or the operator; "" for none.
func (l *Ledger) Filed(id protocol.ContractID, unit int) string {
	k, err := parseContract(id)
	h := l.holds[l.deals[dealKey{k, unit}]]
	if err != nil || h == nil || h.deal.stage == stageOpen {
		return ""
	}
	return h.ref
}

// Parties are the user and the seller of a unit whose hold is open.
func (l *Ledger) Parties(id protocol.ContractID, unit int) (user, seller protocol.AgentID, ok bool) {
	k, err := parseContract(id)
	h := l.holds[l.deals[dealKey{k, unit}]]
	if err != nil || h == nil {
		return "", "", false
	}
	return h.deal.user, h.deal.seller, true
}

// dealOf is a unit's outcome and its hold; no hold: it has ended.
func (l *Ledger) dealOf(k contractKey, unit int) (*outcome, *hold, error) {
	o := l.recent(k)
	switch {
	case o == nil && l.forgotten(k, 0):
		return nil, nil, ErrAskStore
	case o == nil || !o.settled:
		return nil, nil, refuse(protocol.CodeUnknown, "contract %s was not settled", k.id())
	case o.mode == "":
		return nil, nil, refuse(protocol.CodeMode, "contract %s was paid at its reservation", k.id())
	}
	h := l.holds[l.deals[dealKey{k, unit}]]
	if h == nil && !o.ended(unit) {
		return nil, nil, refuse(protocol.CodeUnknown, "contract %s has no unit %d", k.id(), unit+1)
	}
	if h != nil && l.recovery {
		return nil, nil, l.recovering()
	}
	return o, h, nil
}

func (l *Ledger) receiptOr(id protocol.ContractID, o *outcome) protocol.Receipt {
	if o == nil {
		return protocol.Receipt{}
	}
	return l.receipt(id, o)
}

// over reports whether a hold's time is over, and the grace after a restart.
func (l *Ledger) over(now time.Time, h *hold) bool { return nanos(now) >= max(h.until, l.graceEnds) }

// Judge takes what a user says of a usage record that its seller filed: it
// countersigns, which pays what is due, or disputes, and the operator arbitrates.
func (l *Ledger) Judge(now time.Time, id protocol.ContractID, unit int, by protocol.AgentID, agree bool, ref string) (protocol.Receipt, []protocol.Record, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, h, err := l.dealOf(k, unit)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	switch {
	case o.user != by:
		return protocol.Receipt{}, nil, refuse(protocol.CodeForbidden, "%s is not the user of contract %s", by, id)
	case h == nil:
		return l.receipt(id, o), nil, nil
	case h.deal.stage == stageOpen:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d: its seller has filed no usage record", unit+1)
	case l.over(now, h):
		return protocol.Receipt{}, nil, refuse(protocol.CodeExpired, "unit %d: a dispute was due by %s", unit+1, fromNanos(h.until).Format(time.RFC3339))
	case len(ref) > MaxRef:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	case agree:
		return l.end(now, o, h, h.deal.due, protocol.EndAgreed, ref)
	case h.deal.stage == stageDisputed:
		return l.receipt(id, o), nil, nil
	}
	c := l.change()
	h.deal.stage, h.until = stageDisputed, never
	c.restage(now, h, KindDispute, ref)
	return l.receipt(id, o), c.recs, nil
}

// Arbitrate ends the hold of a unit because the operator decides: 0..held is
// paid, the rest is free again.
func (l *Ledger) Arbitrate(now time.Time, id protocol.ContractID, unit int, paid protocol.Credits, ref string) (protocol.Receipt, []protocol.Record, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, h, err := l.dealOf(k, unit)
	switch {
	case err != nil:
		return protocol.Receipt{}, nil, err
	case h == nil:
		return protocol.Receipt{}, nil, refuse(protocol.CodeUnknown, "unit %d of contract %s is not held: transfer instead", unit+1, id)
	case paid < 0 || paid > h.amount():
		return protocol.Receipt{}, nil, refuse(protocol.CodeFunds, "payment of %s out of hold %d: want 0..%s", paid, h.number, h.amount())
	case ref == "" || len(ref) > MaxRef:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes: want 1..%d", len(ref), MaxRef)
	}
	return l.end(now, o, h, paid, protocol.EndArbitrated, ref)
}

// cancelDeal frees amount of a held unit, and pays its seller the rest.
func (l *Ledger) cancelDeal(now time.Time, k contractKey, o *outcome, u *protocol.BundleUnit, amount protocol.Credits) (protocol.Receipt, []protocol.Record, error) {
	h := l.holds[l.deals[dealKey{k, u.Unit}]]
	if h == nil || h.deal.stage != stageOpen {
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d has ended, or its usage was filed: it cannot be cancelled", u.Unit+1)
	}
	return l.end(now, o, h, u.Cost-amount, endCancelled, "")
}

// end ends the hold of a unit, if those who are paid can be.
func (l *Ledger) end(now time.Time, o *outcome, h *hold, paid protocol.Credits, how protocol.End, ref string) (protocol.Receipt, []protocol.Record, error) {
	earned, err := l.mayEarn(now, h, paid)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	c := l.change()
	c.complete(now, o, h, paid, earned, how, ref)
	return l.receipt(h.deal.key.contract.id(), o), c.recs, nil
}

func (l *Ledger) mayEarn(now time.Time, h *hold, paid protocol.Credits) ([]earning, error) {
	if paid == 0 {
		return nil, nil
	}
	earned, err := l.earnings(h.deal.seller, h.currency(), paid)
	if err != nil {
		return nil, err
	}
	for _, e := range earned {
		n := e.account.line(h.currency())
		own := slices.ContainsFunc(h.parts, func(p part) bool { return p.line == n })
		if !own && !l.takes(now, n, e.amount) {
			return nil, refuse(protocol.CodeOverflow, "payment of %s to %s: %s", e.amount, e.account.id, protocol.ErrOverflow)
		}
	}
	return earned, nil
}

func (c *change) complete(now time.Time, o *outcome, h *hold, paid protocol.Credits, earned []earning, how protocol.End, ref string) {
	moves := h.free(paid)
	for _, e := range earned {
		moves = append(moves, move{line: c.line(e.account, h.currency()), amount: e.amount})
	}
	c.closeHold(h)
	e := Entry{Kind: KindComplete, Unit: h.deal.key.unit, Hold: h.number, Total: paid, How: how, Ref: ref}
	c.endUnit(now, h.deal.key.contract, o, e, moves)
}

// expireDeal ends the hold of a unit whose time is over: what was filed is paid,
// and else nothing. If nobody can be paid, the operator has to arbitrate.
func (c *change) expireDeal(now time.Time, h *hold, done *Expired) {
	paid, how := protocol.Credits(0), protocol.EndExpired
	if h.deal.stage == stageFiled {
		paid, how = h.deal.due, protocol.EndSilent
	}
	earned, err := c.l.mayEarn(now, h, paid)
	if err != nil {
		h.deal.stage, h.until = stageDisputed, never
		c.restage(now, h, KindDispute, "not paid: "+string(codeOf(err)))
		return
	}
	k := h.deal.key.contract
	o := c.l.recent(k)
	c.complete(now, o, h, paid, earned, how, "")
	done.Ended = append(done.Ended, Ended{Contract: k.id(), User: h.deal.user, Seller: h.deal.seller, Unit: h.deal.key.unit, Paid: paid, How: how})
}

package ledger

import (
	"slices"
	"strings"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// dealKey names a unit of a bundle.
type dealKey struct {
	contract contractKey
	unit     int
}

// deal is a unit that is paid after the fact: its hold ends by its seller's report, by
// its cancellation, or because a party stays silent for too long.
//
//	open ----the seller failed, or nothing due---> freed
//	open ----delivered----------------> paid                     (on-completion)
//	open ----a usage record-----------> filed                    (metered)
//	open ----the seller is silent-----> freed
//	filed ---the user countersigns, or is silent--> what is due is paid, the rest freed
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

// deals owns which holds pay for units after the fact, and ends them.
type deals struct {
	books     *books
	deadlines *deadlines
	recovery  *recovery
	holds     *holds
	groups    *Groups
	outcomes  *outcomes
	open      map[dealKey]*hold
}

func (ds *deals) loadHold(key string, value []byte) error {
	h, err := ds.holds.load(key, value)
	if err == nil && h.deal != nil {
		ds.open[h.deal.key] = h
	}
	return err
}

// stage is the state of a unit's report. The numbers are stored.
type stage byte

const (
	stageOpen     stage = 0
	stageFiled    stage = 1
	stageDisputed stage = 2
)

// never is the deadline of a hold that only people end.
const never = 1<<63 - 1

// endCancelled ends a held unit by its seller's agreement. Receipts show it as a refund.
const endCancelled protocol.End = "cancelled"

// reserve decides for a bundle and holds the cost of each unit.
func (bs *bundles) reserve(c *change, now time.Time, k contractKey, g *gathering, b *protocol.Bundle, p plan) protocol.Receipt {
	e := Entry{Kind: KindReserve, User: g.user, Currency: g.currency, Mode: b.Mode, Total: g.total}
	var moves []move
	if p.voucher != nil {
		e.Hold = p.voucher.number
		bs.holds.drop(c, p.voucher)
		moves = p.voucher.free(0)
	}
	for i, parts := range p.units {
		u := &b.Units[i]
		h := &hold{parts: parts, until: row.Nanos(protocol.Later(u.Slot.End, b.SettleBy).Add(bs.books.cfg.ReportWithin))}
		h.deal = &deal{key: dealKey{k, u.Unit}, user: b.User, seller: u.Seller, mode: b.Mode}
		bs.holds.add(c, h)
		bs.deals.open[h.deal.key] = h
		e.Units = append(e.Units, HeldUnit{Unit: u.Unit, Hold: h.number, Legs: len(parts)})
		for _, q := range parts {
			moves = append(moves, move{line: q.line, held: q.amount})
		}
	}
	e = c.write(now, e, &k, moves...)
	if p.voucher != nil {
		bs.holds.rest(c, now, p.voucher, slices.Concat(p.units...))
	}
	bs.sales.note(c, e.Number, b)
	return bs.close(c, k, g, &outcome{settled: true, entry: e.Number, time: row.Nanos(e.Time), total: g.total, mode: b.Mode})
}

// JobReport is a seller's report on a unit whose job has stopped. The caller has verified
// the signatures.
type JobReport struct {
	Unit    int
	Success bool
	// Delivered: the job failed, but had its cores, so they are paid like those of a
	// successful one.
	Delivered bool
	Usage     protocol.Usage // metered: the usage of the job, successful or not
	Agreed    bool           // metered: the user has countersigned this record
	Ref       string         // names the signed record
}

// Report takes the report of a unit's job from its seller. On completion it ends the
// hold; a metered one is filed, and waits DisputeWithin for its user. A repeated report
// gets the recorded answer.
func (l *Ledger) Report(now time.Time, id protocol.ContractID, b protocol.Bundle, by protocol.AgentID, r JobReport) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.bundles.checkPayable(id, &b, by, false)
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
	o, h, err := l.deals.find(k, r.Unit)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if h == nil {
		return l.outcomes.receipt(id, o), nil, nil
	}
	switch {
	case checkRef(r.Ref) != nil:
		return protocol.Receipt{}, nil, checkRef(r.Ref)
	case h.deal.stage != stageOpen && h.deal.due != due:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d: by the filed record %s is due, not %s", r.Unit+1, h.deal.due, due)
	case h.deal.stage == stageOpen && l.deadlines.passed(now, h.until):
		return protocol.Receipt{}, nil, refuse(protocol.CodeExpired, "unit %d: its report was due by %s", r.Unit+1, row.Instant(h.until).Format(time.RFC3339))
	}
	return l.deals.conclude(now, o, h, due, r)
}

// conclude ends a hold by its report, or files the report.
func (ds *deals) conclude(now time.Time, o *outcome, h *hold, due protocol.Credits, r JobReport) (protocol.Receipt, []protocol.Record, error) {
	id := h.deal.key.contract.id()
	switch {
	case h.deal.mode == protocol.ModeOnCompletion && r.Success:
		return ds.end(now, o, h, due, protocol.EndSucceeded, r.Ref)
	case h.deal.mode == protocol.ModeOnCompletion:
		return ds.end(now, o, h, due, protocol.EndFailed, r.Ref)
	case r.Agreed || due == 0 && h.deal.stage == stageOpen:
		return ds.end(now, o, h, due, protocol.EndAgreed, r.Ref)
	case h.deal.stage != stageOpen:
		return ds.outcomes.receipt(id, o), nil, nil
	}
	c := ds.books.change()
	h.deal.stage, h.deal.due, h.until, h.ref = stageFiled, due, ds.books.instant(now)+int64(protocol.DisputeWithin), r.Ref
	ds.deadlines.await(deadline{at: h.until, hold: h.number})
	ds.restage(c, now, h, KindUsage, r.Ref)
	return ds.outcomes.receipt(id, o), c.recs, nil
}

// dispute leaves a hold to the operator. The hold keeps the reason behind the record's hash.
func (ds *deals) dispute(c *change, now time.Time, h *hold, why, ref string) {
	h.deal.stage, h.until = stageDisputed, never
	h.ref = strings.TrimSpace(h.ref + " " + why)
	h.ref = h.ref[:min(len(h.ref), MaxRef)]
	ds.restage(c, now, h, KindDispute, ref)
}

func (ds *deals) restage(c *change, now time.Time, h *hold, kind Kind, ref string) {
	c.put(TableHolds, NumberKey(h.number), h.encode())
	k := h.deal.key.contract
	c.write(now, Entry{Kind: kind, Unit: h.deal.key.unit, Hold: h.number, Total: h.deal.due, Ref: ref}, &k)
}

// due is the amount that a report makes due, at most the unit's cost.
func (r *JobReport) due(b *protocol.Bundle, u *protocol.BundleUnit) (protocol.Credits, error) {
	if b.Mode != protocol.ModeMetered {
		return u.Due(b.Mode, r.Success || r.Delivered, r.Usage), nil
	}
	if err := r.Usage.Validate(); err != nil {
		return 0, refuse(protocol.CodeMalformed, "unit %d: %s", r.Unit+1, err)
	}
	if u.Slot.Cores > 0 && r.Usage.CPU/time.Duration(u.Slot.Cores) > r.Usage.Wall {
		return 0, refuse(protocol.CodeMismatch, "unit %d: %d cores cannot use %s in %s", r.Unit+1, u.Slot.Cores, r.Usage.CPU, r.Usage.Wall)
	}
	return u.Due(b.Mode, r.Success || r.Delivered, r.Usage), nil
}

// Due is the amount that a seller's report makes due by the terms of a bundle.
func Due(b protocol.Bundle, seller protocol.AgentID, r JobReport) (protocol.Credits, error) {
	u, err := unitOf(&b, r.Unit, 0, seller)
	if err != nil {
		return 0, err
	}
	return r.due(&b, u)
}

// Filed is the Ref of the usage record of a unit that waits for its user or the operator, or "".
func (l *Ledger) Filed(id protocol.ContractID, unit int) string {
	if h := l.deals.hold(id, unit); h != nil && h.deal.stage != stageOpen {
		record, _, _ := strings.Cut(h.ref, " ")
		return record
	}
	return ""
}

func (ds *deals) hold(id protocol.ContractID, unit int) *hold {
	k, err := parseContract(id)
	if err != nil {
		return nil
	}
	return ds.open[dealKey{k, unit}]
}

// Parties are the user and the seller of a unit whose hold is open.
func (l *Ledger) Parties(id protocol.ContractID, unit int) (user, seller protocol.AgentID, ok bool) {
	if h := l.deals.hold(id, unit); h != nil {
		return h.deal.user, h.deal.seller, true
	}
	return "", "", false
}

// find is a unit's outcome and its hold; without a hold, the unit has ended.
func (ds *deals) find(k contractKey, unit int) (*outcome, *hold, error) {
	o := ds.outcomes.recent(k)
	switch {
	case o == nil && ds.outcomes.forgotten(k, 0):
		return nil, nil, ErrAskStore
	case o == nil || !o.settled:
		return nil, nil, refuse(protocol.CodeUnknown, "contract %s was not settled", k.id())
	case o.mode == "":
		return nil, nil, refuse(protocol.CodeMode, "contract %s was paid at the reservation", k.id())
	}
	h := ds.open[dealKey{k, unit}]
	if h == nil && !o.ended(unit) {
		return nil, nil, refuse(protocol.CodeUnknown, "contract %s has no unit %d", k.id(), unit+1)
	}
	if h != nil && ds.recovery.on {
		return nil, nil, errRecovering
	}
	return o, h, nil
}

// Judge takes a user's verdict on a filed usage record: it countersigns, and the amount
// due is paid, or disputes, and the operator arbitrates. ref is the record's hash; that of
// a dispute is followed by a space and the reason.
func (l *Ledger) Judge(now time.Time, id protocol.ContractID, unit int, by protocol.AgentID, agree bool, ref string) (protocol.Receipt, []protocol.Record, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, h, err := l.deals.find(k, unit)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	switch {
	case o.user != by:
		return protocol.Receipt{}, nil, refuse(protocol.CodeForbidden, "%s is not the user of contract %s", by, id)
	case h == nil:
		return l.outcomes.receipt(id, o), nil, nil
	case h.deal.stage == stageOpen:
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d: its seller has filed no usage record", unit+1)
	case l.deadlines.passed(now, h.until):
		return protocol.Receipt{}, nil, refuse(protocol.CodeExpired, "unit %d: its user could dispute until %s", unit+1, row.Instant(h.until).Format(time.RFC3339))
	case checkRef(ref) != nil:
		return protocol.Receipt{}, nil, checkRef(ref)
	case agree:
		return l.deals.end(now, o, h, h.deal.due, protocol.EndAgreed, ref)
	case h.deal.stage == stageDisputed:
		return l.outcomes.receipt(id, o), nil, nil
	}
	c := l.books.change()
	_, why, _ := strings.Cut(ref, " ")
	l.deals.dispute(c, now, h, why, ref)
	return l.outcomes.receipt(id, o), c.recs, nil
}

// Arbitrate ends the hold of a unit by the operator's decision: it pays 0..held, and
// frees the rest.
func (l *Ledger) Arbitrate(now time.Time, id protocol.ContractID, unit int, paid protocol.Credits, ref string) (protocol.Receipt, []protocol.Record, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, h, err := l.deals.find(k, unit)
	switch {
	case err != nil:
		return protocol.Receipt{}, nil, err
	case h == nil:
		return protocol.Receipt{}, nil, refuse(protocol.CodeUnknown, "unit %d of contract %s is not held: transfer instead", unit+1, id)
	case paid < 0 || paid > h.amount():
		return protocol.Receipt{}, nil, refuse(protocol.CodeFunds, "payment of %s out of hold %d: want 0..%s", paid, h.number, h.amount())
	case ref == "":
		return protocol.Receipt{}, nil, refuse(protocol.CodeMalformed, "the decision needs a reference: its reason")
	case checkRef(ref) != nil:
		return protocol.Receipt{}, nil, checkRef(ref)
	}
	return l.deals.end(now, o, h, paid, protocol.EndArbitrated, ref)
}

// cancel frees amount of a held unit, and pays its seller the rest.
func (ds *deals) cancel(now time.Time, k contractKey, o *outcome, u *protocol.BundleUnit, amount protocol.Credits) (protocol.Receipt, []protocol.Record, error) {
	h := ds.open[dealKey{k, u.Unit}]
	if h == nil || h.deal.stage != stageOpen {
		return protocol.Receipt{}, nil, refuse(protocol.CodeMismatch, "unit %d has ended, or its usage was filed: it cannot be cancelled", u.Unit+1)
	}
	return ds.end(now, o, h, u.Cost-amount, endCancelled, "")
}

// end ends the hold of a unit, if its earners can be paid.
func (ds *deals) end(now time.Time, o *outcome, h *hold, paid protocol.Credits, how protocol.End, ref string) (protocol.Receipt, []protocol.Record, error) {
	earned, err := ds.mayEarn(now, h, paid)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	c := ds.books.change()
	ds.complete(c, now, o, h, paid, earned, how, ref)
	return ds.outcomes.receipt(h.deal.key.contract.id(), o), c.recs, nil
}

func (ds *deals) mayEarn(now time.Time, h *hold, paid protocol.Credits) ([]earning, error) {
	if paid == 0 {
		return nil, nil
	}
	earned, err := ds.groups.earnings(h.deal.seller, h.currency(), paid)
	if err != nil {
		return nil, err
	}
	for _, e := range earned {
		n := e.account.line(h.currency())
		own := slices.ContainsFunc(h.parts, func(p part) bool { return p.line == n })
		if !own && !ds.books.takes(now, n, e.amount) {
			return nil, refuse(protocol.CodeOverflow, "payment of %s to %s: %s", e.amount, e.account.id, protocol.ErrOverflow)
		}
	}
	return earned, nil
}

func (ds *deals) complete(c *change, now time.Time, o *outcome, h *hold, paid protocol.Credits, earned []earning, how protocol.End, ref string) {
	moves := h.free(paid)
	for _, e := range earned {
		moves = append(moves, move{line: c.line(e.account, h.currency()), amount: e.amount})
	}
	ds.holds.drop(c, h)
	delete(ds.open, h.deal.key)
	e := Entry{Kind: KindComplete, Unit: h.deal.key.unit, Hold: h.number, Total: paid, How: how, Ref: ref}
	ds.endUnit(c, now, h.deal.key.contract, o, e, moves)
}

// expire ends the hold of a unit when its time is over: it pays the filed record, or
// nothing. If the earners cannot be paid, the operator arbitrates.
func (ds *deals) expire(c *change, now time.Time, h *hold, done *Expired) {
	paid, how := protocol.Credits(0), protocol.EndExpired
	if h.deal.stage == stageFiled {
		paid, how = h.deal.due, protocol.EndSilent
	}
	earned, err := ds.mayEarn(now, h, paid)
	if err != nil {
		why := "not paid: " + string(codeOf(err))
		ds.dispute(c, now, h, why, why)
		return
	}
	k := h.deal.key.contract
	o := ds.outcomes.recent(k)
	ds.complete(c, now, o, h, paid, earned, how, "")
	done.Ended = append(done.Ended, Ended{Contract: k.id(), User: h.deal.user, Seller: h.deal.seller, Unit: h.deal.key.unit, Paid: paid, How: how})
}

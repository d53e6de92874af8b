package user

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of purchases whose units have not all ended.
const (
	maxFollowed = 1 << 14         // further ones are shown as they were settled
	maxPaid     = maxFollowed / 2 // paid ones leave room for those that are not
	// askAfter is how long after a slot's end the bank is asked, which pays at once
	// if all goes well; askMost is between later questions.
	askAfter = 30 * time.Second
	askMost  = 10 * time.Minute
	// A seller reports a lost unit of a paid purchase only once, perhaps after its slot. So the bank is
	// asked after a start, also about those that ended within askPast before it, soon again, and then
	// askPaid after that, doubling to askPaidMost, until askLast after the slot.
	askSoon     = 10 * time.Second
	askPaid     = 10 * time.Minute
	askPaidMost = time.Hour
	askLast     = 2 * askPaidMost
	askPast     = 7 * 24 * time.Hour
)

// The states of a unit whose hold has ended; others are the bank's word for it.
const (
	StateSucceeded = "succeeded"
	StateUnitEnded = "paid"
)

// usage follows settled purchases until each of their units has ended.
//
// In the modes that pay after the fact, the bank holds the money until then. Sellers and the bank
// report each end, and the agent asks the bank if it hears nothing. When a seller files a usage
// record, the agent countersigns it if the contract allows it, and disputes it otherwise. A
// purchase paid on reservation is followed too: a seller that loses a unit refunds it.
type usage struct {
	cfg      *Config
	rebuys   *rebuys
	changed  func(now time.Time, row *Row) protocol.Output // takes each purchase whose money has changed
	followed followed
}

// following is a settled purchase with units that have not ended.
type following struct {
	row   *Row
	askAt time.Time
	tries int
	paid  bool      // on reservation
	ends  time.Time // a paid one is followed until then
}

// pause is until the bank is asked again.
func (f *following) pause() time.Duration {
	doublings := min(f.tries, maxDoublings)
	switch {
	case !f.paid:
		return min(askMost, askAfter<<doublings)
	case f.tries == 0:
		return askSoon
	}
	return min(askPaidMost, askPaid<<(doublings-1))
}

// follow follows a purchase until each of its units has ended.
func (r *usage) follow(now time.Time, row *Row, restored bool) protocol.Output {
	p := &row.Purchase
	if !p.Settled || !unended(p) {
		return protocol.Output{}
	}
	f := &following{row: row, paid: p.Mode == "" || p.Mode == protocol.ModeOnReservation}
	n, last := len(r.followed.by), askLast
	switch {
	case n >= maxFollowed || f.paid && n >= maxPaid:
		return protocol.Output{}
	case n >= maxPaid/2: // those that have ended leave room for others
		last = 0
	}
	for _, u := range p.Units {
		switch {
		case !open(u):
		case f.paid:
			f.ends = protocol.Later(f.ends, u.End.Add(last))
		default:
			f.askAt = protocol.Earlier(f.askAt, u.End.Add(askAfter))
		}
	}
	switch {
	case f.paid && restored && (f.ends.After(now) || last > 0 && now.Sub(f.ends) < askPast):
		f.askAt, f.ends = now, protocol.Later(f.ends, now.Add(2*askSoon))
	case f.paid && !f.ends.After(now):
		return protocol.Output{} // long over
	case f.paid:
		f.askAt, f.tries = now.Add(askPaid), 1
	}
	r.followed.add(f)
	return protocol.Output{WakeAt: f.askAt}
}

// forgetEnded stops following a purchase if its units have all ended.
func (r *usage) forgetEnded(row *Row) (ended bool) {
	if ended = !unended(&row.Purchase); ended {
		r.followed.drop(row.Contract)
	}
	return ended
}

func unended(p *Purchase) bool { return slices.ContainsFunc(p.Units, open) }

// open reports whether a unit's money is still held.
func open(u Unit) bool { return u.State == StateSettled || u.State == StateCancelling }

// row is the row of a purchase that is followed; nil for others.
func (r *usage) row(id string) *Row {
	if f := r.followed.purchase(id); f != nil {
		return f.row
	}
	return nil
}

// receive takes a message about a purchase that is followed; false: it is about something else.
func (r *usage) receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	switch body := m.Body.(type) {
	case message.Decision:
		if f := r.followed.by[body.Contract]; f != nil && body.Receipt != nil {
			return r.verdictAnswered(f, m, "").Join(r.unitsEnded(now, f, body.Receipt)), true
		}
	case message.Refusal:
		if f := r.followed.purchase(m.Conversation); f != nil && strings.HasPrefix(m.InReplyTo, verdictPrefix) {
			return r.verdictRefused(f, m, body), true
		}
	case message.JobReport:
		f := r.followed.by[body.Bundle.ID]
		if f == nil {
			return protocol.Output{}, true // over, or never ours
		}
		return r.recordFiled(now, f, body, m.Sender == f.row.Bank), true
	}
	return protocol.Output{}, false
}

// unitsEnded records which units have ended, by a receipt of the contract's bank.
func (r *usage) unitsEnded(now time.Time, f *following, v *contract.VerifiedReceipt) protocol.Output {
	p := &f.row.Purchase
	if !fromBankOf(p, v) {
		return protocol.Output{}
	}
	changed := false
	for _, e := range v.Ends {
		u := f.row.unit(e.Unit)
		if u == nil || !open(*u) {
			continue
		}
		u.State, u.Paid, u.How, u.Word, changed = stateOf(e), e.Paid, e.How, "", true
		p.RefundTotal += u.Cost - e.Paid
	}
	var out protocol.Output
	for _, refund := range v.Refunds {
		if u := f.row.unit(refund.Unit); u != nil && u.State == StateSettled { // a lost unit; a cancelled one waits for its answer
			u.State, u.Paid, changed = StateCancelled, u.Cost-refund.Amount, true
			p.RefundTotal += refund.Amount
			p.Why = fmt.Sprintf("unit %d: %s has lost its slot and refunded %s", u.Unit+1, u.Resource, refund.Amount.Cents())
			out = out.Join(r.rebuys.lose(now, f.row, u))
		}
	}
	if !changed {
		return protocol.Output{}
	}
	event := "ended"
	if r.forgetEnded(f.row) {
		event = "done"
	}
	out.Save = append(append(out.Save, f.row.save()), reserve.LaterRecords(p.ID, *v)...)
	return out.Join(f.row.report(event, time.Time{})).Join(r.rebuys.wake(now)).Join(r.changed(now, f.row))
}

// fromBankOf reports whether a receipt is for a purchase's contract, by its bank.
func fromBankOf(p *Purchase, v *contract.VerifiedReceipt) bool {
	return v.Checked() && v.Contract == p.Contract && v.Bank == p.Bank && v.Signer.ID == p.Bank
}

// stateOf is a unit's state for people: the fate of its job if the bank knows it,
// otherwise that it was paid.
func stateOf(e protocol.UnitEnd) string {
	switch e.How {
	case protocol.EndSucceeded:
		return StateSucceeded
	case protocol.EndFailed, protocol.EndExpired:
		return string(e.How)
	}
	return StateUnitEnded
}

// recordFiled countersigns a usage record, or disputes it. The same record gets the same verdict
// whenever the bank shows it; its seller's copy counts until the bank's is known.
func (r *usage) recordFiled(now time.Time, f *following, q message.JobReport, byBank bool) protocol.Output {
	u := f.row.unit(q.Signed.Note.Unit)
	if u == nil || !open(*u) || q.Signed.Signer.ID != u.Seller || q.Bundle.Bundle.User != r.cfg.self() {
		return protocol.Output{} // another seller's unit, or one that has ended
	}
	hash, err := contract.RecordHash(q.Signed.Note)
	if err != nil {
		return protocol.Output{}
	}
	if !byBank && u.Record != "" && u.Record != hash {
		return protocol.Output{} // as of a seller that has lost its journal
	}
	var out protocol.Output
	if u.Record != hash {
		noteUsage(u, q, hash)
		out = f.row.saveAndReport("usage")
	}
	if verdict := r.verdictOn(u, byBank); verdict != "" {
		out = out.Join(r.give(now, f, u, verdict))
	}
	return out
}

// noteUsage copies a record to its unit. A unit that was disputed stays so when
// another record replaces the first.
func noteUsage(u *Unit, q message.JobReport, hash string) {
	n := q.Signed.Note
	u.Record, u.Word, u.Heard = hash, "", ""
	u.Usage, u.Due, u.Measured = &n.Usage, n.Due, n.Measured
	u.Dispute, u.Guarantee = cmp.Or(u.Dispute, faultOf(q)), guaranteeOf(q.Bundle.Bundle, n)
}

// guaranteeOf is how a seller has kept its promise, by its own record. A broken one
// is shown, and is no ground for a dispute: nothing is due for the part that was
// missed, and the rest is due by the contract (001).
func guaranteeOf(b protocol.Bundle, n contract.JobRecord) *protocol.Guarantee {
	i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == n.Unit })
	if i < 0 || b.Mode != protocol.ModeMetered {
		return nil
	}
	return b.Units[i].Tariff.Guarantee(n.Usage)
}

// faultOf is why a record cannot be countersigned, as far as a buyer can check; "" if it can.
func faultOf(q message.JobReport) string {
	n, b := q.Signed.Note, q.Bundle.Bundle
	i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == n.Unit })
	if i < 0 {
		return "the contract has no such unit"
	}
	u := b.Units[i]
	switch {
	case u.Within(n.Usage) != n.Usage:
		return fmt.Sprintf("%d cores and %s cannot give %s of core time in %s", u.Slot.Cores, u.Slot.Wall(), n.Usage.CPU, n.Usage.Wall)
	case !u.Owes(n.Due, b.Mode, n.Success, n.Usage):
		return fmt.Sprintf("%s is due by the contract, not %s", u.Due(b.Mode, true, n.Usage), n.Due)
	case n.Ended.Before(u.Slot.Start.Add(n.Usage.Wall - protocol.ClockSkew)):
		return "it ended before it can have used so much"
	}
	return ""
}

// wake asks the bank about units that should have ended.
func (r *usage) wake(now time.Time) protocol.Output {
	var out protocol.Output
	for f := r.followed.first(); f != nil && !now.Before(f.askAt); f = r.followed.first() {
		if f.paid && !now.Before(f.ends) {
			r.followed.drop(f.row.Contract)
			continue
		}
		query := request(r.cfg.self(), f.row.Bank, f.row.ID, "ended", message.OutcomeQuery{Contract: f.row.Contract})
		query.Performative = protocol.QueryRef
		out.Send = append(append(out.Send, query), r.giveAgain(now, f)...)
		r.followed.putOff(f, now.Add(f.pause()))
		f.tries++
	}
	if f := r.followed.first(); f != nil {
		out.WakeAt = f.askAt
	}
	return out
}

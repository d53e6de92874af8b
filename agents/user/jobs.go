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

// In the modes that pay after the fact a purchase goes on when it is settled: its
// money is held until each unit has ended. The agent hears of that from the
// sellers and from the bank, and asks the bank if it hears nothing. A usage record
// that a seller has filed it countersigns if it is one that the contract allows,
// and disputes otherwise.

// Bounds of purchases whose units have not all ended.
const (
	maxAwaited = 1 << 14        // further ones are shown as they were settled
	maxPaid    = maxAwaited / 2 // ones that are paid leave room for those that are not
	// askAfter is how long after a slot's end the bank is asked, who pays at once
	// if all goes well; askMost is between later questions.
	askAfter = 30 * time.Second
	askMost  = 10 * time.Minute
	// Of one that is paid the bank is asked after a start, since its seller tells of a
	// lost unit once, soon again, and then askPaid after that, doubling to askPaidMost.
	askSoon     = 10 * time.Second
	askPaid     = 10 * time.Minute
	askPaidMost = time.Hour
)

// The states of a unit whose hold has ended; others are the bank's word for it.
const (
	StateSucceeded = "succeeded"
	StateUnitEnded = "paid"
)

// awaited is a settled purchase with units that have not ended.
type awaited struct {
	row   *Row
	askAt time.Time
	tries int
	paid  bool      // on reservation
	ends  time.Time // of paid: it is followed up to then
}

// pause is until the bank is asked again.
func (a *awaited) pause() time.Duration {
	doublings := min(a.tries, maxCancelTries)
	switch {
	case !a.paid:
		return min(askMost, askAfter<<doublings)
	case a.tries == 0:
		return askSoon
	}
	return min(askPaidMost, askPaid<<(doublings-1))
}

// await follows a purchase until each of its units has ended. One that is paid is
// followed as well: a seller that loses a unit gives its price back.
func (r *Role) await(now time.Time, row *Row, restored bool) protocol.Output {
	p := &row.Purchase
	if !p.Settled || !unended(p) {
		return protocol.Output{}
	}
	a := &awaited{row: row, paid: p.Mode == "" || p.Mode == protocol.ModeOnReservation}
	if n := r.awaited.len(); n >= maxAwaited || a.paid && n >= maxPaid {
		return protocol.Output{}
	}
	for _, u := range p.Units {
		switch {
		case !open(u):
		case a.paid:
			a.ends = later(a.ends, u.End)
		default:
			a.askAt = protocol.Earlier(a.askAt, u.End.Add(askAfter))
		}
	}
	switch {
	case a.paid && !a.ends.After(now):
		return protocol.Output{} // long over
	case a.paid && restored:
		a.askAt = now
	case a.paid:
		a.askAt, a.tries = now.Add(askPaid), 1
	}
	r.awaited.add(a)
	return protocol.Output{WakeAt: a.askAt}
}

// forgetEnded stops following a purchase whose units have all ended.
func (r *Role) forgetEnded(row *Row) {
	if !unended(&row.Purchase) {
		r.awaited.drop(row.Purchase.Contract)
	}
}

func unended(p *message.Purchase) bool { return slices.ContainsFunc(p.Units, open) }

// open reports whether a unit's money is still held.
func open(u message.PurchasedUnit) bool { return u.State == StateSettled || u.State == StateCancelling }

// awaitedRow is the row of a purchase that is followed; nil for others.
func (r *Role) awaitedRow(id string) *Row {
	if a := r.awaitedOf(id); a != nil {
		return a.row
	}
	return nil
}

func (r *Role) awaitedOf(id string) *awaited {
	for _, a := range r.awaited.by { // in any order: there is one
		if a.row.Purchase.ID == id {
			return a
		}
	}
	return nil
}

// heardOfJob takes what is about a purchase that is followed; false: it is about
// something else.
func (r *Role) heardOfJob(now time.Time, m protocol.Message) (protocol.Output, bool) {
	switch body := m.Body.(type) {
	case message.Decision:
		if a := r.awaited.of(body.Contract); a != nil && body.Receipt != nil && r.cancellationOf(m) == nil {
			return r.wordHeard(a, m, "").Join(r.unitsEnded(now, a, body.Receipt)), true
		}
	case message.Refusal:
		if a := r.awaitedOf(m.Conversation); a != nil && strings.HasPrefix(m.InReplyTo, verdictPrefix) {
			return r.wordRefused(a, m, body), true
		}
	case message.JobReport:
		a := r.awaited.of(body.Bundle.ID)
		if a == nil {
			return protocol.Output{}, true // over, or never ours
		}
		return r.judge(now, a, body, m.Sender == a.row.Purchase.Bank), true
	}
	return protocol.Output{}, false
}

// unitsEnded notes which units a receipt of the contract's bank says have ended.
func (r *Role) unitsEnded(now time.Time, a *awaited, v *contract.VerifiedReceipt) protocol.Output {
	p := &a.row.Purchase
	if !ofItsBank(p, v) {
		return protocol.Output{}
	}
	changed := false
	for _, e := range v.Ends {
		u := unitOf(a.row, e.Unit)
		if u == nil || !open(*u) {
			continue
		}
		u.State, u.Paid, u.How, u.Word, changed = stateOf(e), e.Paid, e.How, "", true
		p.RefundTotal += u.Cost - e.Paid
	}
	var out protocol.Output
	for _, f := range v.Refunds {
		if u := unitOf(a.row, f.Unit); u != nil && u.State == StateSettled { // a broken unit; one that was cancelled waits for its answer
			u.State, u.Paid, changed = StateCancelled, u.Cost-f.Amount, true
			p.RefundTotal += f.Amount
			p.Why = fmt.Sprintf("unit %d: %s has lost its slot, and %s was given back", u.Unit+1, u.Resource, f.Amount)
			out = out.Join(r.loseUnit(now, a.row, u))
		}
	}
	if !changed {
		return protocol.Output{}
	}
	event := "ended"
	if !unended(p) {
		r.awaited.drop(p.Contract)
		event = "done"
	}
	out.Save = append(append(out.Save, saveRow(*a.row)), reserve.LaterRecords(p.ID, *v)...)
	return out.Join(tellRow(*a.row, event)).Join(r.wakeLost(now))
}

// ofItsBank reports whether a receipt is for a purchase's contract, by its bank.
func ofItsBank(p *message.Purchase, v *contract.VerifiedReceipt) bool {
	return v.Checked() && v.Contract == p.Contract && v.Bank == p.Bank && v.Signer.ID == p.Bank
}

// stateOf is a unit's state for people: what became of its job if the bank says
// that, else that it was paid.
func stateOf(e protocol.UnitEnd) string {
	switch e.How {
	case protocol.EndSucceeded:
		return StateSucceeded
	case protocol.EndFailed, protocol.EndExpired:
		return string(e.How)
	}
	return StateUnitEnded
}

// judge countersigns a usage record, or disputes it. The same record gets the same
// verdict whenever the bank shows it; its seller's copy counts until the bank's is known.
func (r *Role) judge(now time.Time, a *awaited, q message.JobReport, byBank bool) protocol.Output {
	u := unitOf(a.row, q.Signed.Note.Unit)
	if u == nil || !open(*u) || q.Signed.Signer.ID != u.Seller || q.Bundle.Bundle.User != r.ID() {
		return protocol.Output{} // of another's unit, or one that has ended
	}
	hash, err := contract.RecordHash(q.Signed.Note)
	if err != nil {
		return protocol.Output{}
	}
	if !byBank && u.Record != "" && u.Record != hash {
		return protocol.Output{} // as of a seller that has lost its journal
	}
	out := r.noteUsage(a, u, q, hash)
	if word := r.wordOn(u, byBank); word != "" {
		out = out.Join(r.speak(now, a, u, word))
	}
	return out
}

// noteUsage keeps what a record says beside its unit, once. What was disputed stays so
// when another record comes in the place of the first.
func (r *Role) noteUsage(a *awaited, u *message.PurchasedUnit, q message.JobReport, hash string) protocol.Output {
	if u.Record == hash {
		return protocol.Output{}
	}
	n := q.Signed.Note
	u.Record, u.Word, u.Heard = hash, "", ""
	u.Usage, u.Due, u.Dispute, u.Measured = &n.Usage, n.Due, cmp.Or(u.Dispute, faultOf(q)), n.Measured
	u.Guarantee = guaranteeOf(q.Bundle.Bundle, n)
	return protocol.Output{Save: []protocol.Record{saveRow(*a.row)}}.Join(tellRow(*a.row, "usage"))
}

// guaranteeOf is how a seller has kept its promise by its own record. One that it broke
// is shown, and no ground for a dispute: nothing is due for what was missed, and what
// is due for the rest is right by the contract (001).
func guaranteeOf(b protocol.Bundle, n contract.JobRecord) *protocol.Guarantee {
	i := slices.IndexFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Unit == n.Unit })
	if i < 0 || b.Mode != protocol.ModeMetered {
		return nil
	}
	return b.Units[i].Tariff.Guarantee(n.Usage)
}

// faultOf is why a record cannot be countersigned, as far as a buyer can tell;
// "" if it can.
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
	case n.Due != u.Due(b.Mode, n.Success, n.Usage):
		return fmt.Sprintf("%s is due by the contract, not %s", u.Due(b.Mode, n.Success, n.Usage), n.Due)
	case n.Ended.Before(u.Slot.Start.Add(n.Usage.Wall - protocol.ClockSkew)):
		return "it ended before it can have used so much"
	}
	return ""
}

// wakeAwaited asks the bank about units that should have ended.
func (r *Role) wakeAwaited(now time.Time) protocol.Output {
	var out protocol.Output
	for a := r.awaited.first(); a != nil && !now.Before(a.askAt); a = r.awaited.first() {
		if a.paid && !now.Before(a.ends) {
			r.awaited.drop(a.row.Purchase.Contract)
			continue
		}
		out.Send = append(append(out.Send, r.askOutcome(a)), r.sayAgain(now, a)...)
		r.awaited.putOff(a, now.Add(a.pause()))
		a.tries++
	}
	if a := r.awaited.first(); a != nil {
		out.WakeAt = a.askAt
	}
	return out
}

func (r *Role) askOutcome(a *awaited) protocol.Message {
	return protocol.Message{
		Performative: protocol.QueryRef, Sender: r.ID(), Receivers: []protocol.AgentID{a.row.Purchase.Bank},
		Protocol: protocol.ProtocolRequest, Conversation: a.row.Purchase.ID, ReplyWith: "ended",
		Body: message.OutcomeQuery{Contract: a.row.Purchase.Contract},
	}
}

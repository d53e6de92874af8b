package reserve

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// Participant is the seller's side of every vote, commit and settlement.
//
// Per unit it goes through these states; each is durable before anybody hears
// of it:
//
//	reserving --all slots of the offer granted--> held
//	reserving, held --cancel, refused, lost, hold-until--> freed
//	held --bundle checked, slot kept, signed--> countersigned (in doubt)
//	countersigned --the bank settled--> sold
//	countersigned --the bank voided--> freed
//	sold --lost by the batch system for good--> broken
//	sold --cancelled and refunded--> cancelled
//	sold --its job has stopped, in a bundle that is paid after the fact--> reported
//
// A countersigned unit is kept until a decision signed by the bank named in the
// bundle is there, whoever brings it.
type Participant struct {
	cfg        ParticipantConfig
	deals      map[dealKey]*deal
	order      []*deal // in order of creation, or of key after a restart
	claims     map[string]*claim
	contracts  map[protocol.ContractID]*deal
	buyers     map[protocol.AgentID]*buyerHolds
	strangers  map[string]protocol.Slot // reservations that an older journal must have made
	swept      map[string]bool          // reservations of this life, freed and forgotten, until settled
	began      time.Time                // this life
	final      time.Time                // from then on nothing of an earlier life can be settled
	inquiries  []*inquiry               // one for each bank; none: the journal is trusted
	restored   []*claim                 // from the journal, while banks are asked about it
	found      map[protocol.ContractID]*found
	foundUnits map[string]*found // by reservation
	counter    uint64            // of reservations ever made
	counted    uint64            // as the journal has it
	forgotten  uint64            // the highest that the journal had at the start
	unsold     int               // claims reserving, held or countersigned
}

// Notary signs as the seller, deterministically: now is the signing time.
type Notary interface {
	Countersign(v contract.Verified, now time.Time) (contract.Sale, error)
	Refund(r contract.Refund, now time.Time) (contract.VerifiedNote[contract.Refund], error)
	Job(r contract.JobRecord, now time.Time) (contract.VerifiedNote[contract.JobRecord], error)
}

// Book is where promised slots are written, so that what is promised to one
// buyer is not offered to the next.
type Book interface {
	Free(start, end time.Time) int
	Add(id string, slot protocol.Slot)
	Remove(id string)
}

// ParticipantConfig is what a seller brings to every commit.
type ParticipantConfig struct {
	Self   protocol.AgentID
	Terms  []protocol.Terms
	Modes  []protocol.Mode
	Notary Notary
	Book   Book
	Hold   time.Duration // longest time for which a vote holds a slot
	// What one buyer may hold without buying it.
	BuyerHolds       int   // units at once, 1..MaxUnsold
	BuyerReserves    int   // of them, not granted by the batch system yet, 1..MaxUnsold
	BuyerCoreSeconds int64 // core-seconds of slots per hour, 1..2⁶⁰
	Cancellation     CancelPolicy
	// TrustJournal: the journal is known to be complete, and no bank is asked at the
	// start what it settled.
	TrustJournal bool
}

// CancelPolicy says whether a settled unit can be given back.
type CancelPolicy struct {
	Allowed     bool
	Before      time.Duration // at least so long before the slot's start
	FeePerMille int           // of its cost that the seller keeps, 0..1000
}

// Bounds of a Participant.
const (
	MaxUnsold = 4096 // claims reserving, held or countersigned at once; more are refused with limit
	MaxHold   = 10 * time.Minute
	Retention = 24 * time.Hour // how long an ended unit can still be asked about
)

// Validate names the field that is wrong and what is allowed.
func (c ParticipantConfig) Validate() error {
	switch {
	case len(c.Terms) == 0:
		return fmt.Errorf("terms: want at least one bank and currency")
	case len(c.Modes) == 0:
		return fmt.Errorf("modes: want at least one settlement mode")
	case c.Hold < 2*protocol.ClockSkew || c.Hold > MaxHold:
		return fmt.Errorf("hold %s: want %s..%s", c.Hold, 2*protocol.ClockSkew, MaxHold)
	case c.BuyerHolds < 1 || c.BuyerHolds > MaxUnsold:
		return fmt.Errorf("holds per buyer %d: want 1..%d", c.BuyerHolds, MaxUnsold)
	case c.BuyerReserves < 1 || c.BuyerReserves > MaxUnsold:
		return fmt.Errorf("reservations asked for per buyer %d: want 1..%d", c.BuyerReserves, MaxUnsold)
	case c.BuyerCoreSeconds < 1 || c.BuyerCoreSeconds > maxCoreSeconds:
		return fmt.Errorf("core-seconds per buyer and hour %d: want 1..%d", c.BuyerCoreSeconds, int64(maxCoreSeconds))
	case c.Cancellation.Before < 0:
		return fmt.Errorf("cancellation until %s before the start: want 0 or more", c.Cancellation.Before)
	case c.Cancellation.FeePerMille < 0 || c.Cancellation.FeePerMille > 1000:
		return fmt.Errorf("cancellation fee %d per mille: want 0..1000", c.Cancellation.FeePerMille)
	}
	return nil
}

// turn gathers what one event leads to. Every deal that it touched is saved
// once, at its end.
type turn struct {
	now     time.Time
	out     protocol.Output
	seen    []*deal // whose alarms may have changed
	changed []*deal // that are to be saved
	all     bool    // every deal was looked at
	woken   bool    // the alarm went off, so that none stands
}

func (t *turn) send(m ...protocol.Message) { t.out.Send = append(t.out.Send, m...) }
func (t *turn) save(r protocol.Record)     { t.out.Save = append(t.out.Save, r) }

// see has the alarm of d set at the end of the turn.
func (t *turn) see(d *deal) {
	if !t.all && !d.seen {
		d.seen = true
		t.seen = append(t.seen, d)
	}
}

// touch has d saved at the end of the turn.
func (t *turn) touch(d *deal) {
	t.see(d)
	if !slices.Contains(t.changed, d) {
		t.changed = append(t.changed, d)
	}
}

// end saves what was touched and sets the alarm.
func (p *Participant) end(t *turn) protocol.Output {
	if p.counter != p.counted {
		t.save(counterRecord(p.counter))
		p.counted = p.counter
	}
	for _, d := range t.changed {
		if d.durable || !d.empty() {
			t.save(p.record(d))
			d.durable = true
		}
		if d.empty() {
			p.forget(d)
		}
	}
	t.out.WakeAt = protocol.Earlier(p.alarm(t), p.foundDue())
	for _, q := range p.inquiries {
		t.out.WakeAt = protocol.Earlier(t.out.WakeAt, p.inquiryDue(q))
	}
	return t.out
}

// alarm is when the next hold ends, question is due or record is put away, among
// the deals that were seen: for the others an alarm stands already, unless it has
// just gone off.
func (p *Participant) alarm(t *turn) time.Time {
	seen := t.seen
	if t.all {
		seen = p.order
	}
	for _, d := range seen {
		d.dueAt, d.seen = d.due(), false
	}
	if t.woken {
		seen = p.order
	}
	var at time.Time
	for _, d := range seen {
		at = protocol.Earlier(at, d.dueAt)
	}
	return at
}

// Receive takes any message of a commit, of a settlement or from the batch
// system but accept-proposal, which is for Accept. It reports whether the message
// was one of those.
func (p *Participant) Receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	t := &turn{now: now}
	switch body := m.Body.(type) {
	case message.Reserved:
		p.reserved(t, body)
	case message.Released:
		p.released(t, body)
	case message.QueueChanged:
		p.reconcile(t, body)
	case message.SlotUsed:
		p.slotUsed(t, body)
	case message.Confirmation:
		p.confirm(t, m, body.Bundle)
	case message.Cancellation:
		p.cancel(t, m, body)
	case message.Decision:
		p.decide(t, m, body)
	case message.UnitCancellation:
		p.cancelUnit(t, m, body)
	case message.Refusal:
		p.notAnswered(m, body)
		p.notGiven(t, m, body)
		p.refused(t, m, body)
	case message.SoldList:
		p.soldList(t, m, body)
	case message.BundleCopy:
		p.bundleCopy(t, body.Bundle)
	default:
		return protocol.Output{}, false
	}
	return p.end(t), true
}

// Wake ends holds that are over, asks again what was not answered, and puts
// away what is long past.
func (p *Participant) Wake(now time.Time) protocol.Output {
	t := &turn{now: now, woken: true}
	for _, d := range slices.Clone(p.order) {
		if due := d.dueAt; !due.IsZero() && !now.Before(due) {
			t.see(d)
			p.wakeDeal(t, d)
		}
	}
	p.inquire(t)
	p.wakeFound(t)
	p.forgetStrangers(t)
	p.forgetBuyers(now)
	return p.end(t)
}

func (p *Participant) wakeDeal(t *turn, d *deal) {
	p.expire(t, d)
	p.askBank(t, d)
	for _, c := range d.claims {
		p.retryClaim(t, c)
		p.watchJob(t, c)
	}
	p.putAway(t, d)
}

func (p *Participant) message(to protocol.AgentID, perf protocol.Performative, token, conversation string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: perf, Sender: p.cfg.Self, Receivers: []protocol.AgentID{to},
		Protocol: token, Conversation: conversation, Body: body,
	}
}

// queue is a request to the batch system.
func (p *Participant) queue(body protocol.Body) protocol.Message {
	return p.message(protocol.LocalQueue, protocol.Request, protocol.ProtocolQueue, "", body)
}

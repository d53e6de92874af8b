package reserve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// What a bank has settled and the journal does not know is found: its slots are
// promised again at once, and the batch system is asked for those that it has no
// more. Its user is asked for the contract that it signed; with that, the deal is
// as it was, in doubt until the bank has sent its receipt again.

// TableFound has the contracts that were found and are not whole again.
const TableFound = "seller-found"

// found is a contract that a bank has and the journal lacks.
type found struct {
	Bank    protocol.AgentID `json:"bank"`
	Sold    protocol.Sold    `json:"sold"`
	retryAt time.Time        // when its user is asked for it again
	retries int
	asked   time.Time // when the batch system was last asked for its slots
	over    bool      // its last slot is, and blocks nothing any more
}

func (f *found) unit(reservation string) (protocol.SoldUnit, bool) {
	i := slices.IndexFunc(f.Sold.Units, func(u protocol.SoldUnit) bool { return u.Reservation == reservation })
	if i < 0 {
		return protocol.SoldUnit{}, false
	}
	return f.Sold.Units[i], true
}

// Found counts the units that are sold, of contracts that the journal lacks.
func (p *Participant) Found() int { return len(p.foundUnits) }

// lines are the units as they are shown: sold, at a price that only the contract
// tells.
func (f *found) lines() []message.ReservationLine {
	var list []message.ReservationLine
	for _, u := range f.Sold.Units {
		list = append(list, message.ReservationLine{
			ID: u.Reservation, State: string(ClaimSold), User: f.Sold.User, Conversation: f.Sold.Conversation, Unit: u.Unit, Slot: u.Slot,
			Contract: f.Sold.Contract, Bank: f.Bank, Why: "the bank says so; its user is asked for the contract",
		})
	}
	return list
}

// learn takes a contract that a bank has settled. One that the journal has in
// doubt is asked for at once; one that it lacks is found.
func (p *Participant) learn(t *turn, bank protocol.AgentID, s protocol.Sold) {
	if d := p.contracts[s.Contract]; d != nil {
		if d.contract.outcome == "" {
			p.ask(t, d)
		}
		return
	}
	if p.found[s.Contract] != nil || len(s.Units) == 0 || len(p.claims)+len(p.foundUnits)+len(s.Units) > MaxClaims {
		return // known; or all of it is over; or more than could ever be sold here
	}
	f := &found{Bank: bank, Sold: s}
	for _, u := range s.Units {
		p.unhold(t, u.Reservation)
	}
	p.keepFound(f, t.now)
	t.save(protocol.Record{Table: TableFound, Key: string(s.Contract), Value: encode(f)})
	p.askBundle(t, f)
}

// unhold forgets that a unit is held, without freeing it: it was sold since.
func (p *Participant) unhold(t *turn, reservation string) {
	if n, ok := counterOf(reservation); ok {
		p.counter = max(p.counter, n)
	}
	if _, ok := p.strangers[reservation]; ok {
		delete(p.strangers, reservation)
		t.save(strangerRecord(reservation, nil))
	}
	c := p.claims[reservation]
	if c == nil {
		return
	}
	if c.unsold() {
		p.answered(c)
		p.drop(t.now, c)
	}
	if c.blocks() {
		p.cfg.Book.Remove(c.id)
	}
	delete(p.claims, c.id)
	c.deal.claims = slices.DeleteFunc(c.deal.claims, func(x *claim) bool { return x == c })
	t.touch(c.deal)
}

func (p *Participant) keepFound(f *found, now time.Time) {
	p.found[f.Sold.Contract] = f
	for _, u := range f.Sold.Units {
		p.foundUnits[u.Reservation] = f
		if u.Slot.End.After(now) {
			p.cfg.Book.Add(u.Reservation, u.Slot)
		}
	}
}

// final is from when a contract that was found need not be remembered.
func (f *found) final() time.Time { return f.Sold.Ends.Add(protocol.ReportWithin) }

func (p *Participant) readFound(_ string, value []byte, now time.Time) error {
	var f found
	if err := json.Unmarshal(value, &f); err != nil {
		return err
	}
	if f.final().After(now) {
		p.keepFound(&f, now)
	}
	return nil
}

// askBundle asks the user of a contract for it.
func (p *Participant) askBundle(t *turn, f *found) {
	m := p.message(f.Sold.User, protocol.QueryRef, protocol.ProtocolRequest, f.Sold.Conversation, message.BundleQuery{Contract: f.Sold.Contract})
	m.ReplyWith = bundleTag + string(f.Sold.Contract)
	t.send(m)
	f.retryAt = t.now.Add(backOff(f.retries))
	f.retries++
}

// bundleTag begins the reply-with of a question for a contract.
const bundleTag = "bundle-"

// notGiven takes that a user does not give a contract. Users keep contracts as long as
// their sellers may need them: one of which all slots are over is needed by nobody.
func (p *Participant) notGiven(t *turn, m protocol.Message, body message.Refusal) {
	id, ok := strings.CutPrefix(m.InReplyTo, bundleTag)
	f := p.found[protocol.ContractID(id)]
	if !ok || f == nil || m.Sender != f.Sold.User || f.Sold.Ends.After(t.now) {
		return
	}
	if slices.ContainsFunc(body.Reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeUnknown }) {
		p.unbook(f)
		p.dropFound(t, f)
	}
}

// wakeFound asks users again, and forgets what is over.
func (p *Participant) wakeFound(t *turn) {
	for _, id := range slices.Sorted(maps.Keys(p.found)) {
		f := p.found[id]
		if !f.over && !f.Sold.Ends.After(t.now) {
			f.over = true
			p.unbook(f)
		}
		switch {
		case !f.final().After(t.now):
			p.dropFound(t, f)
		case !t.now.Before(f.retryAt):
			p.askBundle(t, f)
		}
	}
}

func (p *Participant) foundDue() time.Time {
	var at time.Time
	for _, f := range p.found { // in any order: it is the least
		end := f.final()
		if !f.over {
			end = f.Sold.Ends
		}
		at = protocol.Earlier(protocol.Earlier(at, f.retryAt), end)
	}
	return at
}

func (p *Participant) unbook(f *found) {
	for _, u := range f.Sold.Units {
		p.cfg.Book.Remove(u.Reservation)
	}
}

func (p *Participant) dropFound(t *turn, f *found) {
	delete(p.found, f.Sold.Contract)
	t.save(protocol.Record{Table: TableFound, Key: string(f.Sold.Contract)})
	for _, u := range f.Sold.Units {
		delete(p.foundUnits, u.Reservation)
	}
}

// remakeFound asks the batch system for the slots of what was found that it does
// not have.
func (p *Participant) remakeFound(t *turn, q message.QueueChanged) {
	there := map[string]bool{}
	for _, r := range q.Reservations {
		if f := p.foundUnits[r.ID]; f != nil && r.Mine {
			u, _ := f.unit(r.ID)
			there[r.ID] = covers(r.Slot, u.Slot)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.found)) {
		f := p.found[id]
		if t.now.Before(f.asked.Add(protocol.RetryMost)) {
			continue
		}
		for _, u := range f.Sold.Units {
			if !there[u.Reservation] && u.Slot.End.After(q.At) {
				f.asked = t.now
				t.send(p.queue(message.Reserve{ID: u.Reservation, Slot: u.Slot}))
			}
		}
	}
}

// bundleCopy takes a contract that was found from its user, whose signature on it
// was verified.
func (p *Participant) bundleCopy(t *turn, v contract.Verified) {
	f := p.found[v.ID]
	if f == nil || !v.Checked() || v.Bundle.Bank != f.Bank {
		return // not asked for, or not any more
	}
	key := dealKey{v.Bundle.User, v.Bundle.Conversation}
	if d := p.deals[key]; d != nil && d.contract != nil {
		return // one contract a conversation, ever
	}
	sale, err := p.cfg.Notary.Countersign(v, t.now)
	if err != nil {
		return // asked again
	}
	p.rebuild(t, f, key, sale)
}

// rebuild makes the deal of a contract that was found, as it was when it was
// countersigned. What the bank knows to be over is freed.
func (p *Participant) rebuild(t *turn, f *found, key dealKey, sale contract.Sale) {
	d := p.deals[key]
	if d == nil {
		d = p.newDeal(key, sale.Bundle.RFQ)
	}
	d.hash = sale.Bundle.RFQ
	p.failPending(t, d, protocol.Reason{Code: protocol.CodeMismatch, Unit: protocol.AllUnits, Note: "the conversation has its contract already"})
	p.dropFound(t, f)
	for _, u := range p.mine(sale.Bundle) {
		_, live := f.unit(u.Reservation)
		p.reclaim(t, d, u, sale.Bundle.SettleBy, live)
	}
	d.contract = &promise{sale: sale}
	p.contracts[sale.Verified.ID] = d
	t.save(saleRecord(sale, t.now))
	t.touch(d)
	p.ask(t, d)
}

const foundOffer = "found" // the offer of claims whose own is not known any more

func (p *Participant) reclaim(t *turn, d *deal, u protocol.BundleUnit, until time.Time, live bool) {
	p.unhold(t, u.Reservation)
	c := &claim{
		deal: d, id: u.Reservation, offer: foundOffer, holdUntil: until, named: true, tariff: u.Tariff,
		item: protocol.Item{Unit: u.Unit, Slot: u.Slot, Price: u.Price, Cost: u.Cost}, state: ClaimCountersigned,
	}
	d.claims = append(d.claims, c)
	p.claims[c.id] = c
	if !live {
		c.state, c.why, c.endedAt = ClaimFreed, "over before the journal was lost", t.now
		return
	}
	p.take(t.now, c)
}

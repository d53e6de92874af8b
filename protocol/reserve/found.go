package reserve

import (
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// found keeps contracts that a bank has settled and the journal lacks.
//
// The seller promises their slots again at once, and asks the batch system for any
// that it no longer has. It asks the user for the signed contract. With that it
// rebuilds the deal, in doubt until the bank sends its receipt again.
type found struct {
	cfg       *ParticipantConfig
	deals     *deals
	quota     *quota
	slots     slots
	strangers *strangers
	holds     *holds
	contracts map[protocol.ContractID]*foundContract
	units     map[string]*foundContract // by reservation
}

// TableFound has the found contracts whose deal is not rebuilt yet.
const TableFound = "seller-found"

// foundContract is a contract that a bank has and the journal lacks.
type foundContract struct {
	Bank    protocol.AgentID `json:"bank"`
	Sold    protocol.Sold    `json:"sold"`
	retryAt time.Time        // next question to its user
	retries int
	asked   time.Time // last request for its slots to the batch system
	over    bool      // its last slot has ended and blocks nothing
}

func (f *foundContract) unit(reservation string) (protocol.SoldUnit, bool) {
	i := slices.IndexFunc(f.Sold.Units, func(u protocol.SoldUnit) bool { return u.Reservation == reservation })
	if i < 0 {
		return protocol.SoldUnit{}, false
	}
	return f.Sold.Units[i], true
}

// lines show the units as sold. Only the contract has their prices.
func (fs *found) lines() []message.ReservationLine {
	var list []message.ReservationLine
	for _, f := range fs.contracts { // any order: the caller sorts
		for _, u := range f.Sold.Units {
			list = append(list, message.ReservationLine{
				ID: u.Reservation, State: string(ClaimSold), User: f.Sold.User, Conversation: f.Sold.Conversation, Unit: u.Unit, Slot: u.Slot,
				Contract: f.Sold.Contract, Bank: f.Bank, Why: "listed by the bank; waiting for the user's copy of the contract",
			})
		}
	}
	return list
}

// learn takes a contract that a bank has settled. If the journal has it in doubt,
// the seller asks for the decision at once.
func (fs *found) learn(t *turn, bank protocol.AgentID, s protocol.Sold) {
	if d := fs.deals.contracts[s.Contract]; d != nil {
		if d.inDoubt() {
			d.askBank(t)
		}
		return
	}
	if fs.holds.voids.byID[s.Contract] != nil || fs.contracts[s.Contract] != nil || len(s.Units) == 0 || len(fs.deals.claims)+len(fs.units)+len(s.Units) > MaxClaims {
		return // void, known, over, or more than the seller could have sold
	}
	f := &foundContract{Bank: bank, Sold: s}
	for _, u := range s.Units {
		fs.unhold(t, u.Reservation)
	}
	fs.keep(f, t.now)
	t.save(protocol.Record{Table: TableFound, Key: string(s.Contract), Value: encode(f)})
	fs.ask(t, f)
}

// unhold forgets a hold without freeing its slot, because it was sold since.
func (fs *found) unhold(t *turn, reservation string) {
	fs.deals.avoid(reservation)
	fs.strangers.forget(t, reservation)
	c := fs.deals.claims[reservation]
	if c == nil {
		return
	}
	if c.unsold() {
		fs.quota.answered(c)
		fs.quota.remove(c)
	}
	if c.blocks() {
		fs.slots.book.Remove(c.id)
	}
	c.deal.unprepare(t)
	delete(fs.deals.claims, c.id)
	c.deal.claims = slices.DeleteFunc(c.deal.claims, func(x *claim) bool { return x == c })
	t.touch(c.deal)
}

func (fs *found) keep(f *foundContract, now time.Time) {
	fs.contracts[f.Sold.Contract] = f
	for _, u := range f.Sold.Units {
		fs.units[u.Reservation] = f
		if u.Slot.End.After(now) {
			fs.slots.book.Add(u.Reservation, u.Slot)
		}
	}
}

// final returns when a found contract can be forgotten.
func (f *foundContract) final() time.Time { return f.Sold.Ends.Add(protocol.ReportWithin) }

func (fs *found) restore(f *foundContract, now time.Time) {
	if f.final().After(now) {
		fs.keep(f, now)
	}
}

// setBack follows a clock that is set back.
func (fs *found) setBack(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(fs.contracts)) {
		f := fs.contracts[id]
		if f.retryAt.After(now) {
			f.retryAt = now
		}
		f.asked, f.over = time.Time{}, f.over && !f.Sold.Ends.After(now)
		for _, u := range f.Sold.Units {
			fs.slots.rebook(now, u.Reservation, u.Slot, true)
		}
	}
}

// ask asks the user of a contract for its copy.
func (fs *found) ask(t *turn, f *foundContract) {
	t.ask(f.Sold.User, protocol.QueryRef, f.Sold.Conversation, bundleTag+string(f.Sold.Contract), message.BundleQuery{Contract: f.Sold.Contract})
	f.retryAt = t.now.Add(backOff(f.retries))
	f.retries++
}

// bundleTag begins the reply-with of a question for a contract.
const bundleTag = "bundle-"

// refused takes a user's refusal to provide a contract. Users keep contracts as long as sellers may
// need them, so an unknown one is dropped once its slots have ended.
func (fs *found) refused(t *turn, m protocol.Message, body message.Refusal) {
	id, ok := strings.CutPrefix(m.InReplyTo, bundleTag)
	f := fs.contracts[protocol.ContractID(id)]
	if !ok || f == nil || m.Sender != f.Sold.User || f.Sold.Ends.After(t.now) {
		return
	}
	if slices.ContainsFunc(body.Reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeUnknown }) {
		fs.unbook(f)
		fs.drop(t, f)
	}
}

// wake asks users again, and forgets contracts in time.
func (fs *found) wake(t *turn) {
	for _, id := range slices.Sorted(maps.Keys(fs.contracts)) {
		f := fs.contracts[id]
		if !f.over && !f.Sold.Ends.After(t.now) {
			f.over = true
			fs.unbook(f)
		}
		switch {
		case !f.final().After(t.now):
			fs.drop(t, f)
		case !t.now.Before(f.retryAt):
			fs.ask(t, f)
		}
	}
}

func (fs *found) due() time.Time {
	var at time.Time
	for _, f := range fs.contracts { // any order: this is a minimum
		end := f.final()
		if !f.over {
			end = f.Sold.Ends
		}
		at = protocol.Earlier(protocol.Earlier(at, f.retryAt), end)
	}
	return at
}

func (fs *found) unbook(f *foundContract) {
	for _, u := range f.Sold.Units {
		fs.slots.book.Remove(u.Reservation)
	}
}

func (fs *found) drop(t *turn, f *foundContract) {
	delete(fs.contracts, f.Sold.Contract)
	t.save(protocol.Record{Table: TableFound, Key: string(f.Sold.Contract)})
	for _, u := range f.Sold.Units {
		delete(fs.units, u.Reservation)
	}
}

// remake asks the batch system for the slots that it lacks.
func (fs *found) remake(t *turn, q message.QueueChanged) {
	there := map[string]bool{}
	for _, r := range q.Reservations {
		if f := fs.units[r.ID]; f != nil && r.Mine {
			u, _ := f.unit(r.ID)
			there[r.ID] = covers(r.Slot, u.Slot)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(fs.contracts)) {
		f := fs.contracts[id]
		if t.now.Before(f.asked.Add(protocol.RetryMost)) {
			continue
		}
		for _, u := range f.Sold.Units {
			if !there[u.Reservation] && u.Slot.End.After(q.At) {
				f.asked = t.now
				t.queue(message.Reserve{ID: u.Reservation, Slot: u.Slot})
			}
		}
	}
}

// copied takes a found contract from its user, whose signature is verified.
func (fs *found) copied(t *turn, v contract.Verified) {
	f := fs.contracts[v.ID]
	if f == nil || !v.Checked() || v.Bundle.Bank != f.Bank {
		return // not awaited
	}
	key := dealKey{v.Bundle.User, v.Bundle.Conversation}
	if d := fs.deals.byKey[key]; d != nil && (d.contract != nil || d.void != "") {
		return // at most one contract per conversation
	}
	sale, err := fs.cfg.Notary.Countersign(v, t.now)
	if err != nil {
		return // the seller asks again
	}
	fs.rebuild(t, f, key, sale)
}

// rebuild makes the deal of a found contract as it was when it was countersigned.
// Units that the bank no longer lists are over.
func (fs *found) rebuild(t *turn, f *foundContract, key dealKey, sale contract.Sale) {
	d := fs.deals.byKey[key]
	if d == nil {
		d = fs.deals.newDeal(key, sale.Bundle.RFQ)
	}
	d.hash = sale.Bundle.RFQ
	d.unprepare(t)
	fs.holds.failPending(t, d, protocol.Reason{Code: protocol.CodeMismatch, Unit: protocol.AllUnits, Note: "the conversation already has a contract"})
	fs.drop(t, f)
	for _, u := range unitsOf(t.self, sale.Bundle) {
		_, live := f.unit(u.Reservation)
		fs.reclaim(t, d, u, sale.Bundle.SettleBy, live)
	}
	if err := fs.deals.attach(d, sale); err != nil {
		panic("reserve: " + err.Error()) // reclaim has just made the claims
	}
	t.save(saleRecord(sale, t.now))
	t.touch(d)
	d.askBank(t)
}

const foundOffer = "found" // stands for the forgotten offer of a rebuilt claim

func (fs *found) reclaim(t *turn, d *deal, u protocol.BundleUnit, until time.Time, live bool) {
	fs.unhold(t, u.Reservation)
	c := &claim{
		id: u.Reservation, offer: foundOffer, since: t.now, holdUntil: until, tariff: u.Tariff,
		item: protocol.Item{Unit: u.Unit, Slot: u.Slot, Price: u.Price, Cost: u.Cost, Least: u.Tariff.Least}, state: ClaimCountersigned,
	}
	fs.deals.add(d, c)
	if !live {
		c.state, c.why, c.endedAt = ClaimFreed, "over before the journal was lost", t.now
		return
	}
	fs.quota.add(c)
}

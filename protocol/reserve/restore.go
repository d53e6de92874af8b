package reserve

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// NewParticipant restores a Participant from its tables. Its first Output continues where the last
// process stopped. It repeats open requests to the batch system (the ID makes them idempotent),
// frees holds that have ended, and asks the banks about contracts in doubt. It compares sold slots
// with the batch system at the first report from there.
func NewParticipant(cfg ParticipantConfig, tables protocol.Tables, now time.Time) (*Participant, protocol.Output, error) {
	p := compose(cfg, now)
	if err := p.restore(tables, now); err != nil {
		return nil, protocol.Output{}, err
	}
	p.banks.begin(cfg.Terms)
	t := p.begin(now)
	t.all = true
	if err := p.back(t); err != nil {
		return nil, protocol.Output{}, err
	}
	p.banks.wake(t)
	for _, d := range slices.Clone(p.deals.order) {
		p.quota.weigh(d)
		p.resume(t, d)
	}
	return p, p.end(t), nil
}

// compose makes an empty Participant from its parts. A part knows only those made before it.
func compose(cfg ParticipantConfig, now time.Time) *Participant {
	p := &Participant{cfg: &cfg, deals: &deals{self: cfg.Self, byKey: map[dealKey]*deal{}, claims: map[string]*claim{}, contracts: map[protocol.ContractID]*deal{}}, slots: slots{cfg.Book}}
	p.quota = &quota{cfg: &cfg, buyers: map[protocol.AgentID]*blocked{}}
	p.banks = &inquiries{trust: cfg.TrustJournal, began: now, final: now.Add(MaxHold + protocol.ClockSkew)}
	p.strangers = &strangers{trust: cfg.TrustJournal, banks: p.banks, deals: p.deals, left: map[string]protocol.Slot{}, freed: map[string]bool{}}
	p.voids, p.past = newVoids(), &past{}
	p.holds = &holds{&cfg, p.deals, p.quota, p.slots, p.strangers, p.voids}
	p.refunds = &refunds{&cfg, p.deals, p.quota, p.slots}
	p.jobs = &jobs{&cfg, p.deals, p.slots}
	p.found = &found{&cfg, p.deals, p.quota, p.slots, p.strangers, p.holds, map[protocol.ContractID]*foundContract{}, map[string]*foundContract{}}
	return p
}

func (p *Participant) restore(tables protocol.Tables, now time.Time) error {
	sales, receipts := map[protocol.ContractID]savedSale{}, map[protocol.ContractID]savedReceipt{}
	for _, table := range []struct {
		name string
		read func(key string, value []byte) error
	}{
		{TableCounter, p.readCounter},
		{TableUnbought, decoding(p.quota.read)},
		{TableStrangers, decoding(func(id string, slot protocol.Slot) error { p.strangers.left[id] = slot; return nil })},
		{TableFound, decoding(func(_ string, f foundContract) error { p.found.restore(&f, now); return nil })},
		{TableSales, decoding(func(id string, s savedSale) error { sales[protocol.ContractID(id)] = s; return nil })},
		{TableVoids, p.voids.read},
		{TablePast, p.past.read},
		{TableReceipts, decoding(func(id string, r savedReceipt) error { receipts[protocol.ContractID(id)] = r; return nil })},
		{TableDeals, decoding(func(_ string, s savedDeal) error { return p.readDeal(s, sales, receipts, now) })},
	} {
		if err := tables.Each(table.name, table.read); err != nil {
			return fmt.Errorf("journal: table %s: %w", table.name, err)
		}
	}
	return nil
}

func (p *Participant) readCounter(_ string, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 64)
	p.deals.counter, p.deals.counted, p.strangers.forgotten = n, n, n
	return err
}

func (p *Participant) readDeal(s savedDeal, sales map[protocol.ContractID]savedSale, receipts map[protocol.ContractID]savedReceipt, now time.Time) error {
	d := p.deals.newDeal(dealKey{s.User, s.Conversation}, s.Document)
	d.durable, d.void = true, s.Void
	for _, c := range s.Claims {
		if err := p.readClaim(d, c, now); err != nil {
			return err
		}
	}
	if s.Contract == "" {
		return nil
	}

	sale, ok := sales[s.Contract]
	if !ok {
		return fmt.Errorf("contract %s is not in table %s", s.Contract, TableSales)
	}
	if err := p.deals.attach(d, sale.sale(s.Contract, p.cfg.Self)); err != nil {
		return err
	}
	if r, ok := receipts[s.Contract]; ok {
		d.contract.outcome, d.contract.receipt = r.Receipt.Outcome, r.receipt()
	}
	d.contract.silent = s.Silent
	for _, c := range d.contract.claims {
		if s.Silent && c.state == ClaimHeld { // nobody knows whether it was released
			c.unsure = false
			c.become(now, ClaimCountersigned, "")
		}
	}
	return nil
}

func (p *Participant) readClaim(d *deal, s savedClaim, now time.Time) error {
	c := &claim{
		id: s.ID, offer: s.Offer, item: s.Item, state: s.State, since: s.Since, holdUntil: s.HoldUntil,
		replyWith: s.ReplyWith, batch: s.Batch, why: s.Why, endedAt: s.EndedAt, releasing: s.Releasing, vacant: s.Vacant,
	}
	if c.since.IsZero() { // written by an older version
		c.since = c.holdUntil.Add(-protocol.DefaultHold)
	}
	switch s.State {
	case ClaimReserving, ClaimHeld, ClaimCountersigned, ClaimSold, ClaimFreed, ClaimBroken, ClaimCancelled:
	default:
		return fmt.Errorf("reservation %s: unknown state %q", s.ID, s.State)
	}
	if s.Refund != nil {
		c.refund = &refundDue{signed: contract.VerifiedNote[contract.Refund]{Note: *s.Refund, DER: s.Signed}, paid: s.Paid}
		c.refund.signed.Signer.ID = p.cfg.Self
	}
	c.readJob(p.cfg.Self, s)
	c.unsure = !p.cfg.TrustJournal && (c.state == ClaimReserving || c.state == ClaimHeld)
	if !p.cfg.TrustJournal {
		p.banks.restored = append(p.banks.restored, c)
	}
	p.deals.add(d, c)
	if c.blocks() && c.item.Slot.End.After(now) {
		p.slots.book.Add(c.id, c.item.Slot)
	}
	if c.unsold() {
		p.quota.add(c)
	}
	return nil
}

// resume continues a deal after a restart.
func (p *Participant) resume(t *turn, d *deal) {
	switch {
	case d.inDoubt():
		d.askBank(t)
	case d.contract != nil && d.contract.outcome == protocol.OutcomeVoid: // by a version that kept all of it
		t.save(protocol.Record{Table: TableReceipts, Key: string(d.contract.sale.Verified.ID)})
		p.becomeVoid(t, d)
	}
	for _, c := range d.claims {
		switch {
		case c.state == ClaimReserving && t.now.Before(c.holdUntil):
			t.queue(message.Reserve{ID: c.id, Slot: c.item.Slot})
		case c.owes():
			p.refunds.request(t, c)
		}
		if c.releasing {
			t.backOff(c)
			t.queue(message.Release{ID: c.id})
		}
	}
	p.holds.expire(t, d)
}

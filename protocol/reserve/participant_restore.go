package reserve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// NewParticipant restores a Participant from its tables. Its first Output goes
// on where the last process stopped: what was being reserved is asked for again
// (the ID makes it once only), holds that are over are freed, and what is in doubt
// is asked of its bank. What is sold is compared with the batch system when that
// first tells its state.
func NewParticipant(cfg ParticipantConfig, tables protocol.Tables, now time.Time) (*Participant, protocol.Output, error) {
	p := &Participant{
		cfg: cfg, deals: map[dealKey]*deal{}, claims: map[string]*claim{},
		contracts: map[protocol.ContractID]*deal{}, buyers: map[protocol.AgentID]*buyerHolds{},
		strangers: map[string]protocol.Slot{}, swept: map[string]bool{}, found: map[protocol.ContractID]*found{}, foundUnits: map[string]*found{},
		began: now, final: now.Add(MaxHold + protocol.ClockSkew),
	}
	if err := p.restore(tables, now); err != nil {
		return nil, protocol.Output{}, err
	}
	if !cfg.TrustJournal {
		p.inquiries = inquiries(cfg.Terms)
	}
	t := &turn{now: now, all: true}
	p.inquire(t)
	for _, d := range slices.Clone(p.order) {
		p.resume(t, d)
	}
	return p, p.end(t), nil
}

func (p *Participant) restore(tables protocol.Tables, now time.Time) error {
	sales := map[protocol.ContractID]contract.Sale{}
	receipts := map[protocol.ContractID]contract.VerifiedReceipt{}
	for _, table := range []struct {
		name string
		read func(key string, value []byte) error
	}{
		{TableCounter, p.readCounter},
		{TableStrangers, p.readStranger},
		{TableFound, func(key string, value []byte) error { return p.readFound(key, value, now) }},
		{TableSales, func(key string, value []byte) error { return readSale(key, value, sales) }},
		{TableReceipts, func(key string, value []byte) error { return readReceipt(key, value, receipts) }},
		{TableDeals, func(_ string, value []byte) error { return p.readDeal(value, sales, receipts, now) }},
	} {
		err := tables.Each(table.name, func(key string, value []byte) error {
			if err := table.read(key, value); err != nil {
				return fmt.Errorf("journal: table %s: %s: %w", table.name, key, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Participant) readCounter(_ string, value []byte) (err error) {
	p.counter, err = strconv.ParseUint(string(value), 10, 64)
	p.counted, p.forgotten = p.counter, p.counter
	return err
}

func (p *Participant) readStranger(key string, value []byte) error {
	var slot protocol.Slot
	err := json.Unmarshal(value, &slot)
	p.strangers[key] = slot
	return err
}

func readSale(key string, value []byte, sales map[protocol.ContractID]contract.Sale) error {
	var s savedSale
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	sale := contract.Sale{
		Verified:      contract.Verified{ID: protocol.ContractID(key), Bundle: s.Bundle, DER: s.User},
		Countersigned: s.Countersigned, DER: s.Seller,
	}
	sale.User.ID = s.Bundle.User
	sales[sale.Verified.ID] = sale
	return nil
}

func readReceipt(key string, value []byte, receipts map[protocol.ContractID]contract.VerifiedReceipt) error {
	var s savedReceipt
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	r := contract.VerifiedReceipt{Receipt: s.Receipt, DER: s.Signed}
	r.Signer.ID = s.Receipt.Bank
	receipts[protocol.ContractID(key)] = r
	return nil
}

func (p *Participant) readDeal(value []byte, sales map[protocol.ContractID]contract.Sale,
	receipts map[protocol.ContractID]contract.VerifiedReceipt, now time.Time) error {
	var s savedDeal
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	d := p.newDeal(dealKey{s.User, s.Conversation}, s.Document)
	d.durable = true
	if s.Contract != "" {
		sale, ok := sales[s.Contract]
		if !ok {
			return fmt.Errorf("contract %s is not in table %s", s.Contract, TableSales)
		}
		sale.Seller.ID = p.cfg.Self
		d.contract = &promise{sale: sale}
		if r, ok := receipts[s.Contract]; ok {
			d.contract.outcome, d.contract.receipt = r.Outcome, &r
		}
		p.contracts[s.Contract] = d
	}
	for _, c := range s.Claims {
		if err := p.readClaim(d, c, now); err != nil {
			return err
		}
	}
	return p.name(d)
}

// name marks the claims that a restored deal's contract names.
func (p *Participant) name(d *deal) error {
	if d.contract == nil {
		return nil
	}
	for _, u := range p.mine(d.contract.sale.Bundle) {
		c := p.claims[u.Reservation]
		if c == nil || c.deal != d {
			return fmt.Errorf("contract %s names reservation %s, which is not there", d.contract.sale.Verified.ID, u.Reservation)
		}
		c.named = true
	}
	return nil
}

func (p *Participant) readClaim(d *deal, s savedClaim, now time.Time) error {
	c := &claim{
		deal: d, id: s.ID, offer: s.Offer, item: s.Item, state: s.State, holdUntil: s.HoldUntil,
		replyWith: s.ReplyWith, batch: s.Batch, why: s.Why, endedAt: s.EndedAt, releasing: s.Releasing,
	}
	switch s.State {
	case ClaimReserving, ClaimHeld, ClaimCountersigned, ClaimSold, ClaimFreed, ClaimBroken, ClaimCancelled:
	default:
		return fmt.Errorf("reservation %s: state %q", s.ID, s.State)
	}
	if s.Refund != nil {
		c.refund = &refundDue{signed: contract.VerifiedNote[contract.Refund]{Note: *s.Refund, DER: s.Signed}, paid: s.Paid}
		c.refund.signed.Signer.ID = p.cfg.Self
	}
	p.readJob(c, s)
	c.unsure = !p.cfg.TrustJournal && (c.state == ClaimReserving || c.state == ClaimHeld)
	if !p.cfg.TrustJournal {
		p.restored = append(p.restored, c)
	}
	d.claims = append(d.claims, c)
	p.claims[c.id] = c
	if c.blocks() && c.item.Slot.End.After(now) {
		p.cfg.Book.Add(c.id, c.item.Slot)
	}
	if c.unsold() {
		p.take(now, c)
	}
	return nil
}

// resume goes on with a deal after a restart.
func (p *Participant) resume(t *turn, d *deal) {
	if d.contract != nil && d.contract.outcome == "" {
		p.ask(t, d)
	}
	for _, c := range d.claims {
		switch {
		case c.state == ClaimReserving && t.now.Before(c.holdUntil):
			t.send(p.queue(message.Reserve{ID: c.id, Slot: c.item.Slot}))
		case c.owes():
			p.askRefund(t, c)
		}
		if c.releasing {
			t.backOff(c)
			t.send(p.queue(message.Release{ID: c.id}))
		}
	}
	p.expire(t, d)
}

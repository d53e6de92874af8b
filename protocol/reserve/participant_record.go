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

// The tables of a seller's journal. The past ones are never read back into a
// Participant; they are the site's archive.
const (
	TableDeals     = "seller-deals"     // what is held, in doubt or sold
	TableSales     = "seller-sales"     // countersigned bundles, by contract
	TableReceipts  = "seller-receipts"  // the banks' decisions, by contract
	TableCancels   = "seller-cancels"   // buyers' signed cancellations, by contract and unit
	TableStrangers = "seller-strangers" // reservations newer than the journal
	TableCounter   = "seller-counter"
	TablePast      = "seller-past" // deals that are over
	TableContrary  = "seller-contrary"
)

const counterKey = "reservations"

// savedDeal is a deal as the journal has it.
type savedDeal struct {
	User         protocol.AgentID    `json:"user"`
	Conversation string              `json:"conversation"`
	Document     string              `json:"document"`
	Contract     protocol.ContractID `json:"contract,omitempty"`
	Claims       []savedClaim        `json:"claims"`
}

// savedClaim is a claim as the journal has it.
type savedClaim struct {
	ID        string           `json:"id"`
	Offer     string           `json:"offer"`
	Item      protocol.Item    `json:"item"`
	State     ClaimState       `json:"state"`
	HoldUntil time.Time        `json:"hold_until"`
	ReplyWith string           `json:"reply_with,omitempty"`
	Batch     string           `json:"batch,omitempty"`
	Why       string           `json:"why,omitempty"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	Releasing bool             `json:"releasing,omitempty"`
	Refund    *contract.Refund `json:"refund,omitempty"`
	Signed    []byte           `json:"refund_signed,omitempty"`
	Paid      bool             `json:"refund_paid,omitempty"`

	Tariff    protocol.Tariff     `json:"tariff,omitzero"`
	Job       *contract.JobRecord `json:"job,omitempty"` // as it was reported
	JobSigned []byte              `json:"job_signed,omitempty"`
	Over      protocol.End        `json:"over,omitempty"`
}

// savedSale is a countersigned bundle; the signatures were verified when they
// were saved, and are not verified again.
type savedSale struct {
	Bundle        protocol.Bundle `json:"bundle"`
	User          []byte          `json:"user_signed"`
	Seller        []byte          `json:"seller_signed"`
	Countersigned time.Time       `json:"countersigned"`
}

// savedReceipt is a bank's decision.
type savedReceipt struct {
	Receipt protocol.Receipt `json:"receipt"`
	Signed  []byte           `json:"signed"`
}

// pastDeal is a deal that is over, with its papers.
type pastDeal struct {
	Deal    savedDeal    `json:"deal"`
	Sale    savedSale    `json:"sale"`
	Receipt savedReceipt `json:"receipt"`
}

func encode(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("reserve: %T cannot be encoded: %v", v, err)) // only our own types come here
	}
	return value
}

func (k dealKey) String() string { return string(k.user) + " " + k.conversation }

// record is the durable state of a deal; none if it is empty.
func (p *Participant) record(d *deal) protocol.Record {
	if d.empty() {
		return protocol.Record{Table: TableDeals, Key: d.dealKey.String()}
	}
	return protocol.Record{Table: TableDeals, Key: d.dealKey.String(), Value: encode(d.saved())}
}

func (d *deal) saved() savedDeal {
	s := savedDeal{User: d.user, Conversation: d.conversation, Document: d.hash}
	if d.contract != nil {
		s.Contract = d.contract.sale.Verified.ID
	}
	for _, c := range d.claims {
		s.Claims = append(s.Claims, c.saved())
	}
	return s
}

func (c *claim) saved() savedClaim {
	s := savedClaim{
		ID: c.id, Offer: c.offer, Item: c.item, State: c.state, HoldUntil: c.holdUntil, ReplyWith: c.replyWith,
		Batch: c.batch, Why: c.why, EndedAt: c.endedAt, Releasing: c.releasing,
	}
	if c.refund != nil {
		note := c.refund.signed.Note
		s.Refund, s.Signed, s.Paid = &note, c.refund.signed.DER, c.refund.paid
	}
	c.saveJob(&s)
	return s
}

func counterRecord(n uint64) protocol.Record {
	return protocol.Record{Table: TableCounter, Key: counterKey, Value: []byte(strconv.FormatUint(n, 10))}
}

func strangerRecord(id string, slot *protocol.Slot) protocol.Record {
	r := protocol.Record{Table: TableStrangers, Key: id}
	if slot != nil {
		r.Value = encode(slot)
	}
	return r
}

func saleRecord(s contract.Sale, now time.Time) protocol.Record {
	return protocol.Record{Table: TableSales, Key: string(s.Verified.ID), Value: encode(savedSale{
		Bundle: s.Bundle, User: s.Verified.DER, Seller: s.DER, Countersigned: now,
	})}
}

func receiptRecord(r contract.VerifiedReceipt) protocol.Record {
	return protocol.Record{Table: TableReceipts, Key: string(r.Contract), Value: encode(savedReceipt{r.Receipt, r.DER})}
}

func contraryRecord(r contract.VerifiedReceipt) protocol.Record {
	return protocol.Record{Table: TableContrary, Key: string(r.Contract), Value: encode(savedReceipt{r.Receipt, r.DER})}
}

func cancelRecord(c contract.VerifiedNote[contract.Cancel]) protocol.Record {
	return protocol.Record{Table: TableCancels, Key: string(c.Note.Contract) + " " + strconv.Itoa(c.Note.Unit), Value: c.DER}
}

// sweep drops the freed claims of which nobody needs to know any more: released,
// and past the hold in which the buyer might repeat itself. Those that a contract
// names stay with it.
func (p *Participant) sweep(t *turn, d *deal) {
	d.claims = slices.DeleteFunc(d.claims, func(c *claim) bool {
		over := c.state == ClaimFreed && !c.releasing && !t.now.Before(c.holdUntil) && !c.named
		if over {
			delete(p.claims, c.id)
			p.sweptAway(c.id)
			t.touch(d)
		}
		return over
	})
}

// sweptAway remembers that a reservation is of this life and was freed, until it
// is certain that what the journal does not have is nobody's. Beyond the bound, such a
// one is left alone until then.
func (p *Participant) sweptAway(id string) {
	if !p.cfg.TrustJournal && !p.certain() && len(p.swept) < maxSwept {
		p.swept[id] = true
	}
}

// putAwayAt is when nothing more can happen to a deal; zero if that is not known.
func (d *deal) putAwayAt() time.Time {
	if d.contract == nil || d.contract.outcome == "" {
		return time.Time{}
	}
	var at time.Time
	for _, c := range d.claims {
		end, ok := c.finalAt()
		if !ok {
			return time.Time{}
		}
		if end.After(at) {
			at = end
		}
	}
	return at
}

// finalAt is from when a claim need not be remembered, if that is known.
func (c *claim) finalAt() (time.Time, bool) {
	switch c.state {
	case ClaimFreed, ClaimCancelled:
		return c.endedAt.Add(Retention), !c.releasing
	case ClaimBroken:
		return c.endedAt.Add(Retention), c.refund != nil && c.refund.paid && !c.releasing
	case ClaimSold:
		return c.item.Slot.End.Add(Retention), c.refund == nil && !c.paidLater()
	}
	return time.Time{}, false
}

// putAway moves a deal that is over to the archive, with its papers.
func (p *Participant) putAway(t *turn, d *deal) {
	at := d.putAwayAt()
	if at.IsZero() || t.now.Before(at) {
		return
	}
	id := string(d.contract.sale.Verified.ID)
	past := pastDeal{
		d.saved(),
		savedSale{d.contract.sale.Bundle, d.contract.sale.Verified.DER, d.contract.sale.DER, d.contract.sale.Countersigned},
		savedReceipt{d.contract.receipt.Receipt, d.contract.receipt.DER},
	}
	t.save(protocol.Record{Table: TablePast, Key: id, Value: encode(past)})
	t.save(protocol.Record{Table: TableSales, Key: id})
	t.save(protocol.Record{Table: TableReceipts, Key: id})
	for _, c := range d.claims {
		delete(p.claims, c.id)
	}
	delete(p.contracts, d.contract.sale.Verified.ID)
	d.claims, d.contract = nil, nil
	t.touch(d)
}

// forget drops an empty deal.
func (p *Participant) forget(d *deal) {
	delete(p.deals, d.dealKey)
	p.order = slices.DeleteFunc(p.order, func(x *deal) bool { return x == d })
}

// Reservations are what the journal has, in order of start, then ID.
func (p *Participant) Reservations() []message.ReservationLine {
	var list []message.ReservationLine
	for _, d := range p.order {
		for _, c := range d.claims {
			list = append(list, c.line())
		}
	}
	for _, f := range p.found { // sorted below
		list = append(list, f.lines()...)
	}
	slices.SortFunc(list, func(a, b message.ReservationLine) int {
		if n := a.Slot.Start.Compare(b.Slot.Start); n != 0 {
			return n
		}
		return compareIDs(a.ID, b.ID)
	})
	return list
}

func compareIDs(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (c *claim) line() message.ReservationLine {
	l := message.ReservationLine{
		ID: c.id, State: string(c.state), User: c.deal.user, Conversation: c.deal.conversation,
		Unit: c.item.Unit, Slot: c.item.Slot, Price: c.item.Price, Cost: c.item.Cost, HoldUntil: c.holdUntil, Why: c.why,
	}
	if pr := c.deal.contract; pr != nil {
		l.Contract, l.Bank = pr.sale.Verified.ID, pr.sale.Bundle.Bank
	}
	c.showJob(&l)
	return l
}

// Promised counts the units that are reserving, held, in doubt, or sold and not
// over at an instant.
func (p *Participant) Promised(now time.Time) int {
	n := len(p.foundUnits)
	for _, c := range p.claims { // in any order: it is a count
		if c.unsold() || c.state == ClaimSold && c.item.Slot.End.After(now) {
			n++
		}
	}
	return n
}

package reserve

import (
	"encoding/json"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// The tables of a seller's journal. A Participant never reads the past ones back;
// they are the site's archive.
const (
	TableDeals     = "seller-deals"     // units held, in doubt or sold
	TableSales     = "seller-sales"     // countersigned bundles, by contract
	TableReceipts  = "seller-receipts"  // the banks' decisions, by contract
	TableCancels   = "seller-cancels"   // buyers' signed cancellations, by contract and unit
	TableStrangers = "seller-strangers" // reservations newer than the journal
	TableCounter   = "seller-counter"
	TableVoids     = "seller-voids" // the banks' receipts of void contracts, by contract
	TablePast      = "seller-past"  // finished deals
	TableContrary  = "seller-contrary"
)

const counterKey = "reservations"

// savedDeal is the journal's form of a deal.
type savedDeal struct {
	User         protocol.AgentID    `json:"user"`
	Conversation string              `json:"conversation"`
	Document     string              `json:"document"`
	Contract     protocol.ContractID `json:"contract,omitempty"`
	Silent       bool                `json:"silent,omitempty"` // the contract is prepared, and perhaps confirmed
	Void         protocol.ContractID `json:"void,omitempty"`   // that contract, once its bank has voided it
	Claims       []savedClaim        `json:"claims"`
}

// savedClaim is the journal's form of a claim.
type savedClaim struct {
	ID        string           `json:"id"`
	Offer     string           `json:"offer"`
	Item      protocol.Item    `json:"item"`
	State     ClaimState       `json:"state"`
	Since     time.Time        `json:"since,omitzero"`
	HoldUntil time.Time        `json:"hold_until"`
	ReplyWith string           `json:"reply_with,omitempty"`
	Batch     string           `json:"batch,omitempty"`
	Why       string           `json:"why,omitempty"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	Releasing bool             `json:"releasing,omitempty"`
	Vacant    bool             `json:"vacant,omitempty"`
	Refund    *contract.Refund `json:"refund,omitempty"`
	Signed    []byte           `json:"refund_signed,omitempty"`
	Paid      bool             `json:"refund_paid,omitempty"`

	Tariff    protocol.Tariff     `json:"tariff,omitzero"`
	Job       *contract.JobRecord `json:"job,omitempty"` // as reported
	JobSigned []byte              `json:"job_signed,omitempty"`
	Over      protocol.End        `json:"over,omitempty"`
}

// savedSale is a countersigned bundle. Its signatures were verified before it was
// saved, and are not verified again.
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

// pastDeal is a finished deal with its contract and receipt.
type pastDeal struct {
	Deal    savedDeal    `json:"deal"`
	Sale    savedSale    `json:"sale"`
	Receipt savedReceipt `json:"receipt"`
}

// sale returns a countersigned bundle. Its signatures are not verified again.
func (s savedSale) sale(id protocol.ContractID, self protocol.AgentID) contract.Sale {
	sale := contract.Sale{
		Verified:      contract.Verified{ID: id, Bundle: s.Bundle, DER: s.User},
		Countersigned: s.Countersigned, DER: s.Seller,
	}
	sale.User.ID, sale.Seller.ID = s.Bundle.User, self
	return sale
}

func (s savedReceipt) receipt() *contract.VerifiedReceipt {
	r := &contract.VerifiedReceipt{Receipt: s.Receipt, DER: s.Signed}
	r.Signer.ID = s.Receipt.Bank
	return r
}

// decoding makes a reader of JSON records.
func decoding[T any](f func(key string, v T) error) func(key string, value []byte) error {
	return func(key string, value []byte) error {
		var v T
		if err := json.Unmarshal(value, &v); err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		return f(key, v)
	}
}

func encode(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("reserve: encode %T: %v", v, err)) // all callers pass our own types
	}
	return value
}

func (k dealKey) String() string { return string(k.user) + " " + k.conversation }

// record is the durable state of a deal; an empty deal is deleted.
func (d *deal) record() protocol.Record {
	if d.empty() {
		return protocol.Record{Table: TableDeals, Key: d.dealKey.String()}
	}
	return protocol.Record{Table: TableDeals, Key: d.dealKey.String(), Value: encode(d.saved())}
}

func (d *deal) saved() savedDeal {
	s := savedDeal{User: d.user, Conversation: d.conversation, Document: d.hash, Void: d.void}
	if d.prepared != nil {
		s.Contract, s.Silent = d.prepared.Verified.ID, true
	}
	if d.contract != nil {
		s.Contract, s.Silent = d.contract.sale.Verified.ID, d.contract.silent
	}
	for _, c := range d.claims {
		s.Claims = append(s.Claims, c.saved())
	}
	return s
}

func (c *claim) saved() savedClaim {
	s := savedClaim{
		ID: c.id, Offer: c.offer, Item: c.item, State: c.state, Since: c.since, HoldUntil: c.holdUntil, ReplyWith: c.replyWith,
		Batch: c.batch, Why: c.why, EndedAt: c.endedAt, Releasing: c.releasing, Vacant: c.vacant,
	}
	if c.refund != nil {
		note := c.refund.signed.Note
		s.Refund, s.Signed, s.Paid = &note, c.refund.signed.DER, c.refund.paid
	}
	c.saveJob(&s)
	return s
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

func receiptRecord(table string, r contract.VerifiedReceipt) protocol.Record {
	return protocol.Record{Table: table, Key: string(r.Contract), Value: encode(savedReceipt{r.Receipt, r.DER})}
}

// finalAt returns when nothing more can happen to a deal; zero: not known yet.
func (d *deal) finalAt() time.Time {
	if d.contract == nil || d.inDoubt() {
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

// finalAt returns when a claim can be forgotten, if that is known.
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

package reserve

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// ClaimState is the state of a unit at its seller. The words are stored.
type ClaimState string

// The states of a claim.
const (
	ClaimReserving     ClaimState = "reserving"
	ClaimHeld          ClaimState = "held"
	ClaimCountersigned ClaimState = "countersigned"
	ClaimSold          ClaimState = "sold"
	ClaimFreed         ClaimState = "freed"
	ClaimBroken        ClaimState = "broken"
	ClaimCancelled     ClaimState = "cancelled"
)

// dealKey is one buyer's conversation. Conversation-ids are globally unique
// among the honest; the buyer in the key keeps the others out.
type dealKey struct {
	user         protocol.AgentID
	conversation string
}

// deal holds everything that one buyer holds or has bought here in one conversation.
type deal struct {
	dealKey
	hash     string         // of the document
	vouched  protocol.Terms // of the voucher that its holds rest on; not kept over a restart
	claims   []*claim
	durable  bool                // the journal has a record of the deal
	pending  *confirmation       // being checked against the batch system
	prepared *contract.Sale      // signed for a buyer that has not confirmed it; shown to nobody
	contract *promise            // countersigned; at most one per conversation
	void     protocol.ContractID // of the contract that a bank has voided
	dueAt    time.Time           // result of due at the end of the last turn that saw the deal
	seen     bool                // by the running turn
	kept     footprint           // as its buyer's quota counts it
}

// claim is one unit's reservation.
type claim struct {
	deal      *deal
	id        string
	offer     string // ID of the offer it was accepted under
	item      protocol.Item
	tariff    protocol.Tariff // zero: the unit is not metered
	state     ClaimState
	since     time.Time // when it began to block its cores
	holdUntil time.Time
	replyWith string // of the accept-proposal
	batch     string // the batch system's own ID for the reservation
	why       string // reason for the end
	endedAt   time.Time

	named     bool       // the contract names the claim, so both are forgotten together
	vacant    bool       // paid on reservation, and given back after its job
	releasing bool       // the batch system has not confirmed the release yet
	refund    *refundDue // requested from the bank
	granted   time.Time  // by the batch system; zero after a restart or a clock set back
	unsure    bool       // unsold in the journal, which may be older than the sale
	reserved  bool       // granted, while other units of the offer are still open
	remaking  bool       // lost after settlement and requested again
	lostAt    time.Time  // when the seller noticed the loss, while remaking
	retryAt   time.Time  // of whatever the claim waits for
	retries   int

	job   *jobEnd      // reported to the bank, in the modes that pay after the job
	over  protocol.End // how the unit ended, according to the bank; empty: not yet
	check check        // next check on the job
}

// confirmation is a signed bundle while the batch system confirms its slots.
type confirmation struct {
	bundle    contract.Verified
	confirmed bool             // by its buyer; otherwise it is only prepared
	m         protocol.Message // the confirm
	secure    map[string]bool  // reservations that the batch system has read back
}

// promise is a countersigned bundle with the bank's decision about it.
type promise struct {
	sale     contract.Sale
	claims   []*claim         // named by the bundle, in order of unit
	outcome  protocol.Outcome // empty while in doubt
	receipt  *contract.VerifiedReceipt
	silent   bool // prepared before a restart, and perhaps confirmed: shown if it is confirmed again
	gathered bool // the bank has our copy
	lost     bool // a slot is gone, so the seller asks for void
	retryAt  time.Time
	retries  int
}

// refundDue is a refund that the seller has requested from the bank.
type refundDue struct {
	signed  contract.VerifiedNote[contract.Refund]
	request *protocol.Message // the user's cancellation; lost on restart
	paid    bool
}

// become changes a claim's state. Any other edge breaks an invariant.
func (c *claim) become(now time.Time, next ClaimState, why string) {
	if !edge(c.state, next) {
		panic(fmt.Sprintf("reserve: reservation %s cannot go from %q to %q", c.id, c.state, next))
	}
	c.state, c.why = next, why
	c.retryAt, c.retries, c.remaking = time.Time{}, 0, false
	if next == ClaimFreed || next == ClaimCancelled || next == ClaimBroken {
		c.endedAt = now
	}
}

func edge(from, to ClaimState) bool {
	return slices.Contains(map[ClaimState][]ClaimState{
		"":                 {ClaimReserving},
		ClaimReserving:     {ClaimHeld, ClaimFreed},
		ClaimHeld:          {ClaimCountersigned, ClaimFreed},
		ClaimCountersigned: {ClaimSold, ClaimFreed},
		ClaimSold:          {ClaimBroken, ClaimCancelled},
	}[from], to)
}

// unsold reports whether a claim blocks cores without being paid for.
func (c *claim) unsold() bool {
	return c.state == ClaimReserving || c.state == ClaimHeld || c.state == ClaimCountersigned
}

// blocks reports whether a claim's cores are promised.
func (c *claim) blocks() bool { return c.unsold() || c.state == ClaimSold && !c.left() }

// coreSeconds is the size of a slot, rounded up to a second.
func coreSeconds(s protocol.Slot) int64 {
	return int64(s.Cores) * int64((s.Wall()+time.Second-1)/time.Second)
}

// due returns when the deal needs to be woken.
func (d *deal) due() time.Time {
	var at time.Time
	if pr := d.contract; pr != nil && pr.outcome == "" {
		at = pr.retryAt
	}
	for _, c := range d.claims {
		at = protocol.Earlier(at, c.due())
	}
	return protocol.Earlier(at, d.finalAt())
}

func (c *claim) due() time.Time {
	switch c.state {
	case ClaimReserving, ClaimHeld:
		if c.unsure {
			return time.Time{} // the end of the hold triggers an inquiry instead
		}
		return c.holdUntil
	case ClaimFreed:
		if !c.releasing && !c.named {
			return c.holdUntil // then the claim is forgotten
		}
	}
	return protocol.Earlier(c.retryAt, c.jobDue())
}

// signed reports whether the seller has signed a contract of the conversation, void ones
// included, or is about to.
func (d *deal) signed() bool {
	return d.contract != nil || d.prepared != nil || d.pending != nil || d.void != ""
}

func (d *deal) empty() bool { return len(d.claims) == 0 && d.contract == nil }

// vote returns the claims of one accepted offer.
func (d *deal) vote(offer string) []*claim {
	var list []*claim
	for _, c := range d.claims {
		if c.offer == offer {
			list = append(list, c)
		}
	}
	return list
}

// unit returns the live claim on a unit, or nil.
func (d *deal) unit(unit int) *claim {
	for _, c := range d.claims {
		if c.item.Unit == unit && c.state != ClaimFreed {
			return c
		}
	}
	return nil
}

// reservation returns the claim in the form of a vote.
func (c *claim) reservation() message.Reservation {
	return message.Reservation{Unit: c.item.Unit, ID: c.id, Slot: c.item.Slot}
}

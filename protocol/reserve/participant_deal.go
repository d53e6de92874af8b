package reserve

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// ClaimState is how a unit stands with its seller. The words are stored.
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

// deal is all that one buyer holds or has bought here in one conversation.
type deal struct {
	dealKey
	hash     string // of the document
	claims   []*claim
	durable  bool          // the journal has a record of it
	pending  *confirmation // being checked against the batch system
	contract *promise      // countersigned; at most one, ever
	dueAt    time.Time     // as due was at the end of the last turn that saw it
	seen     bool          // in this turn
}

// claim is one unit's reservation.
type claim struct {
	deal      *deal
	id        string
	offer     string // ID of the offer it was accepted under
	item      protocol.Item
	tariff    protocol.Tariff // of what is metered; zero: it is not
	state     ClaimState
	holdUntil time.Time
	replyWith string // of the accept-proposal
	batch     string // the batch system's name of it
	why       string // why it ended
	endedAt   time.Time

	named     bool       // by the deal's contract: it is remembered as long as that
	releasing bool       // the batch system has still to be told, or to confirm
	refund    *refundDue // asked of the bank
	granted   time.Time  // by the batch system; zero after a restart
	unsure    bool       // the journal has it as not sold, and may be older than its sale
	reserved  bool       // granted, while the offer's other units are not
	remaking  bool       // lost after settlement, asked for again
	lostAt    time.Time  // while it is remaking: when that was seen
	retryAt   time.Time  // of whatever the claim waits for
	retries   int

	job  *jobEnd      // reported to the bank, in the modes that pay after the fact
	over protocol.End // how the bank says that the unit ended; empty: it has not
	look lookout      // when that is next looked after
}

// confirmation is a signed bundle whose slots the batch system is asked to keep.
type confirmation struct {
	bundle contract.Verified
	m      protocol.Message
	kept   map[string]bool
}

// promise is a countersigned bundle and what its bank has said of it.
type promise struct {
	sale     contract.Sale
	outcome  protocol.Outcome // empty while in doubt
	receipt  *contract.VerifiedReceipt
	gathered bool // the bank has our copy
	lost     bool // a slot is gone: void is asked for
	retryAt  time.Time
	retries  int
}

// refundDue is money that the seller has asked its bank to give back.
type refundDue struct {
	signed  contract.VerifiedNote[contract.Refund]
	request *protocol.Message // the user's request, while its process lives
	paid    bool
}

// become changes a claim's state. An edge that the protocol does not draw is a
// broken invariant.
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
	switch from {
	case "":
		return to == ClaimReserving
	case ClaimReserving:
		return to == ClaimHeld || to == ClaimFreed
	case ClaimHeld:
		return to == ClaimCountersigned || to == ClaimFreed
	case ClaimCountersigned:
		return to == ClaimSold || to == ClaimFreed
	case ClaimSold:
		return to == ClaimBroken || to == ClaimCancelled
	}
	return false
}

// unsold reports whether a claim blocks cores that nobody has paid for.
func (c *claim) unsold() bool {
	return c.state == ClaimReserving || c.state == ClaimHeld || c.state == ClaimCountersigned
}

// blocks reports whether a claim's cores are promised.
func (c *claim) blocks() bool { return c.unsold() || c.state == ClaimSold && c.job == nil }

// coreSeconds is the size of the claim's slot, rounded up to a second.
func (c *claim) coreSeconds() int64 { return coreSeconds(c.item.Slot) }

func coreSeconds(s protocol.Slot) int64 {
	return int64(s.Cores) * int64((s.Wall()+time.Second-1)/time.Second)
}

// backOff sets the claim's next attempt: from RetryFirst, doubling, to RetryMost.
func (t *turn) backOff(c *claim) {
	t.see(c.deal)
	c.retryAt = t.now.Add(backOff(c.retries))
	c.retries++
}

func backOff(retries int) time.Duration {
	if retries >= maxDoublings {
		return protocol.RetryMost
	}
	return min(protocol.RetryMost, protocol.RetryFirst<<retries)
}

const maxDoublings = 6 // RetryFirst doubled so often is above RetryMost

// due is when the deal wants to be woken.
func (d *deal) due() time.Time {
	var at time.Time
	if pr := d.contract; pr != nil && pr.outcome == "" {
		at = pr.retryAt
	}
	for _, c := range d.claims {
		at = protocol.Earlier(at, c.due())
	}
	return protocol.Earlier(at, d.putAwayAt())
}

func (c *claim) due() time.Time {
	switch c.state {
	case ClaimReserving, ClaimHeld:
		if c.unsure {
			return time.Time{} // the banks are asked when its hold is over
		}
		return c.holdUntil
	case ClaimFreed:
		if !c.releasing && !c.named {
			return c.holdUntil // then it is forgotten
		}
	}
	return protocol.Earlier(c.retryAt, c.jobDue())
}

// empty reports whether nothing of the deal has to be remembered.
func (d *deal) empty() bool { return len(d.claims) == 0 && d.contract == nil }

// vote are the claims of one accepted offer.
func (d *deal) vote(offer string) []*claim {
	var list []*claim
	for _, c := range d.claims {
		if c.offer == offer {
			list = append(list, c)
		}
	}
	return list
}

// unit is the claim on a unit that is not over.
func (d *deal) unit(unit int) *claim {
	for _, c := range d.claims {
		if c.item.Unit == unit && c.state != ClaimFreed {
			return c
		}
	}
	return nil
}

// reservation is the claim as a vote names it.
func (c *claim) reservation() message.Reservation {
	return message.Reservation{Unit: c.item.Unit, ID: c.id, Slot: c.item.Slot}
}

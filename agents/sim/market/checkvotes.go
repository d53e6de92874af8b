package market

import (
	"slices"
	"strings"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// SilenceCostsOnce is the invariant that a seller holds up a purchase of an honest user once
// at most: after it has refused a vote, or not voted in time, it is asked for no other of
// its offers. A seller that wants a voucher has refused if it had one.
const SilenceCostsOnce = "F-silence-costs-once"

// voteChecks owns the votes that honest users have asked for, by auction and seller.
type voteChecks struct {
	audit *audit
	going map[auctionKey]map[protocol.AgentID]*asking
}

// asking is what a seller was asked to hold in one purchase.
type asking struct {
	due     map[string]time.Time // by offer, by the user's clock; without those that were agreed
	vouched map[string]bool      // the offers that it was asked for with a voucher
	refused time.Time            // by the user's clock; zero: it has not
}

// said follows the votes that a user asks for, until its purchase is over.
func (c *voteChecks) said(from *sim.Host, m protocol.Message) {
	if c.audit.m == nil || !c.audit.isUser(from.ID()) {
		return
	}
	key := auctionKey{from.ID(), m.Conversation}
	switch body := m.Body.(type) {
	case message.Acceptance:
		c.asks(key, m.Receivers[0], body, m.ReplyBy)
	case message.Progress:
		if body.Done {
			delete(c.going, key)
		}
	}
}

func (c *voteChecks) asks(key auctionKey, seller protocol.AgentID, accept message.Acceptance, due time.Time) {
	if c.going[key] == nil {
		c.going[key] = map[protocol.AgentID]*asking{}
	}
	a := c.going[key][seller]
	if a == nil {
		a = &asking{due: map[string]time.Time{}, vouched: map[string]bool{}}
		c.going[key][seller] = a
	}
	decided := due.Add(-protocol.VoteTimeout) // a refusal may arrive before the question has left
	late := !a.refused.IsZero() && !a.refused.After(decided)
	for _, at := range a.due { // any order: one is enough
		late = late || !decided.Before(at)
	}
	c.audit.check(SilenceCostsOnce, !late, "%s asks %s for %s of %s, after it has refused or kept silent", key.user.Name(), seller.Name(), accept.Offer.ID, key.conversation)
	a.due[accept.Offer.ID], a.vouched[accept.Offer.ID] = due, accept.Voucher != nil
}

// arrives takes a seller's answer to a user.
func (c *voteChecks) arrives(to, from *sim.Host, m protocol.Message) {
	a := c.going[auctionKey{to.ID(), m.Conversation}][from.ID()]
	if a == nil {
		return
	}
	switch body := m.Body.(type) {
	case message.Vote:
		delete(a.due, body.Offer)
	case message.Refusal:
		offer, again := strings.CutPrefix(m.InReplyTo, "vouched-")
		offer = strings.TrimPrefix(offer, "vote-")
		_, asked := a.due[offer]
		if asked && !again && slices.ContainsFunc(body.Reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeVoucher }) {
			if !a.vouched[offer] {
				delete(a.due, offer)
			}
			return
		}
		if asked && a.refused.IsZero() {
			a.refused = to.Now()
		}
	}
}

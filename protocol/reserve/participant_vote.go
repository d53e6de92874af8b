package reserve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Offered is what the auction knows of an accepted offer.
type Offered struct {
	Offer    protocol.Offer
	Document string // hex SHA-256 of the document it answers
	// Tariffs are what the units cost that the document wants metered, at the prices
	// of the offer.
	Tariffs map[int]protocol.Tariff
}

// Accept answers accept-proposal, which asks for a vote. offered is nil if the
// auction has no such live offer. The answer to an offer that is held already is
// the same vote again.
func (p *Participant) Accept(now time.Time, m protocol.Message, a message.Acceptance, offered *Offered) protocol.Output {
	t := &turn{now: now}
	d := p.deals[dealKey{m.Sender, m.Conversation}]
	if d != nil {
		if vote := d.vote(a.Offer.ID); len(vote) > 0 {
			p.voteAgain(t, m, a, vote)
			return p.end(t)
		}
	}
	until := p.holdUntil(now, a)
	if r, ok := p.acceptable(now, m.Sender, d, a, offered, until); !ok {
		t.send(m.Reply(p.cfg.Self, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{r}}))
		return p.end(t)
	}
	if d == nil {
		d = p.newDeal(dealKey{m.Sender, m.Conversation}, offered.Document)
	}
	p.reserve(t, m, d, a.Offer, until)
	for _, c := range d.vote(a.Offer.ID) {
		c.tariff = offered.Tariffs[c.item.Unit]
	}
	return p.end(t)
}

// holdUntil is until when the seller is ready to hold: as asked, but no longer
// than its own bound.
func (p *Participant) holdUntil(now time.Time, a message.Acceptance) time.Time {
	most := now.Add(p.cfg.Hold)
	if a.HoldUntil.IsZero() {
		return protocol.Earlier(most, now.Add(protocol.DefaultHold))
	}
	return protocol.Earlier(most, a.HoldUntil)
}

// acceptable reports whether an offer can be held, or why not.
func (p *Participant) acceptable(now time.Time, buyer protocol.AgentID, d *deal, a message.Acceptance, offered *Offered, until time.Time) (protocol.Reason, bool) {
	why := func(c protocol.Code, note string) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: note}, false
	}
	switch {
	case offered == nil:
		return why(protocol.CodeUnknown, "no such offer, or it is over")
	case !sameOffer(a.Offer, offered.Offer):
		return why(protocol.CodeMismatch, "the accepted terms are not those of the offer")
	case !until.After(now):
		return why(protocol.CodeExpired, "hold-until is over")
	case d != nil && d.hash != offered.Document:
		return why(protocol.CodeMismatch, "the conversation is about another document")
	case d != nil && (d.contract != nil || d.pending != nil):
		return why(protocol.CodeMismatch, "the conversation has its contract already")
	}
	for _, it := range a.Offer.Items {
		if !it.Slot.Start.After(now) {
			return why(protocol.CodeExpired, "the slot has begun")
		}
		if d != nil && d.unit(it.Unit) != nil {
			return protocol.Reason{Code: protocol.CodeMismatch, Unit: it.Unit, Note: "the unit is held already"}, false
		}
	}
	return p.withinLimits(now, buyer, a.Offer)
}

// sameOffer compares what matters of two offers: times as instants.
func sameOffer(a, b protocol.Offer) bool {
	return a.ID == b.ID && a.Cost == b.Cost && slices.EqualFunc(a.Items, b.Items, sameItem)
}

func sameItem(a, b protocol.Item) bool {
	return a.Unit == b.Unit && a.Price == b.Price && a.Cost == b.Cost && sameSlot(a.Slot, b.Slot)
}

func sameSlot(a, b protocol.Slot) bool {
	return a.Cores == b.Cores && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}

func (p *Participant) newDeal(key dealKey, hash string) *deal {
	d := &deal{dealKey: key, hash: hash}
	p.deals[key] = d
	p.order = append(p.order, d)
	return d
}

// reserve writes the offer's slots into the book and asks the batch system for
// them, unless the machine has become too busy since the offer.
func (p *Participant) reserve(t *turn, m protocol.Message, d *deal, o protocol.Offer, until time.Time) {
	t.touch(d)
	for _, it := range o.Items {
		if free := p.cfg.Book.Free(it.Slot.Start, it.Slot.End); free < it.Slot.Cores {
			p.failVote(t, d, o.ID, nil, "busy")
			t.send(m.Reply(p.cfg.Self, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{
				{Code: protocol.CodeBusy, Unit: it.Unit, Free: free, Note: "the cores were taken since the offer"}}}))
			return
		}
		p.newClaim(t, m, d, o.ID, it, until)
	}
	for _, c := range d.vote(o.ID) {
		t.send(p.queue(message.Reserve{ID: c.id, Slot: c.item.Slot}))
	}
}

func (p *Participant) newClaim(t *turn, m protocol.Message, d *deal, offer string, it protocol.Item, until time.Time) {
	p.counter++
	c := &claim{
		deal: d, id: reservationID(p.cfg.Self, d.dealKey, it.Unit, p.counter),
		offer: offer, item: it, holdUntil: until, replyWith: m.ReplyWith,
	}
	c.become(t.now, ClaimReserving, "")
	d.claims = append(d.claims, c)
	p.claims[c.id] = c
	p.cfg.Book.Add(c.id, it.Slot)
	p.take(t.now, c)
}

// reservationID is unique for ever: the counter is saved with the claim and
// never goes back; the hash keeps a seller's IDs apart if its journal is lost.
func reservationID(self protocol.AgentID, k dealKey, unit int, counter uint64) string {
	sum := sha256.Sum256([]byte(string(k.user) + "\x00" + k.conversation))
	return fmt.Sprintf("%s-%s-%d-%d", self.Name(), hex.EncodeToString(sum[:4]), unit, counter)
}

// voteAgain answers an accept-proposal that came before.
func (p *Participant) voteAgain(t *turn, m protocol.Message, a message.Acceptance, vote []*claim) {
	items := make([]protocol.Item, len(vote))
	for i, c := range vote {
		items[i] = c.item
		switch c.state {
		case ClaimReserving:
			return // the answer is on its way
		case ClaimFreed, ClaimCancelled, ClaimBroken:
			t.send(m.Reply(p.cfg.Self, protocol.Refuse, message.Refused(protocol.CodeExpired, "the hold is over: "+c.why)))
			return
		}
	}
	if !slices.EqualFunc(items, a.Offer.Items, sameItem) {
		t.send(m.Reply(p.cfg.Self, protocol.Refuse, message.Refused(protocol.CodeMismatch, "the accepted terms are not those of the offer")))
		return
	}
	t.send(p.agree(vote))
}

// agree is the vote: the seller's yes to an offer.
func (p *Participant) agree(vote []*claim) protocol.Message {
	first := vote[0]
	body := message.Vote{Offer: first.offer, HoldUntil: first.holdUntil}
	for _, c := range vote {
		body.Reservations = append(body.Reservations, c.reservation())
	}
	return p.answerVote(first, protocol.Agree, body)
}

// answerVote is an answer to the accept-proposal from which a claim is.
func (p *Participant) answerVote(c *claim, perf protocol.Performative, body protocol.Body) protocol.Message {
	m := p.message(c.deal.user, perf, protocol.ProtocolCommit, c.deal.conversation, body)
	m.InReplyTo = c.replyWith
	return m
}

// reserved takes the batch system's answer to Reserve and to Keep. What it read
// back must cover the slot: a batch system may grant less than was asked.
func (p *Participant) reserved(t *turn, r message.Reserved) {
	c := p.claims[r.ID]
	if c == nil {
		return // put away since
	}
	t.see(c.deal)
	if r.OK && !covers(r.Slot, c.item.Slot) {
		r.OK = false
		r.Reason = protocol.Reason{Code: protocol.CodeBusy, Free: r.Slot.Cores, Note: "the batch system granted less than was asked"}
	}
	switch {
	case c.remaking:
		p.remade(t, c, r)
	case r.Kept:
		p.kept(t, c, r)
	case c.state == ClaimReserving:
		p.granted(t, c, r)
	}
}

func covers(got, want protocol.Slot) bool {
	return got.Cores >= want.Cores && !got.Start.After(want.Start) && !got.End.Before(want.End)
}

// granted votes once every unit of the offer is reserved; one that is not ends
// them all.
func (p *Participant) granted(t *turn, c *claim, r message.Reserved) {
	d := c.deal
	if !r.OK {
		r.Reason.Unit = c.item.Unit
		p.failVote(t, d, c.offer, &r.Reason, "refused by the batch system")
		return
	}
	c.reserved, c.granted, c.batch = true, t.now, r.Batch
	vote := d.vote(c.offer)
	if slices.ContainsFunc(vote, func(c *claim) bool { return !c.reserved }) {
		return
	}
	for _, c := range vote {
		p.answered(c)
		c.become(t.now, ClaimHeld, "")
	}
	t.touch(d)
	t.send(p.agree(vote))
}

// failVote frees whatever of an offer is reserved or held. With a reason it
// answers the accept-proposal, if that is still open.
func (p *Participant) failVote(t *turn, d *deal, offer string, r *protocol.Reason, why string) {
	var open *claim
	for _, c := range d.vote(offer) {
		if c.state == ClaimReserving {
			open = c
		}
		if c.state == ClaimReserving || c.state == ClaimHeld {
			p.free(t, c, why)
		}
	}
	if open != nil && r != nil {
		t.send(p.answerVote(open, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{*r}}))
	}
}

// free ends a claim that is not sold and gives its cores back.
func (p *Participant) free(t *turn, c *claim, why string) {
	p.answered(c)
	p.drop(t.now, c)
	c.become(t.now, ClaimFreed, why)
	p.release(t, c)
}

// release has the batch system take a reservation away, until it says so.
func (p *Participant) release(t *turn, c *claim) {
	c.releasing = true
	c.retries = 0
	t.backOff(c)
	p.cfg.Book.Remove(c.id)
	t.touch(c.deal)
	t.send(p.queue(message.Release{ID: c.id}))
}

// released takes the batch system's answer to Release.
func (p *Participant) released(t *turn, r message.Released) {
	c := p.claims[r.ID]
	if c == nil || !c.releasing || !r.OK {
		return // nothing waits for it, or it is asked again at its time
	}
	c.releasing, c.retryAt = false, time.Time{}
	if c.owes() {
		t.backOff(c)
	}
	t.touch(c.deal)
	p.sweep(t, c.deal)
}

// cancel frees what is only held, at the buyer's wish. What may have been sold since
// an older journal is not: the buyer of a purchase that is over cancels whatever vote
// comes again.
func (p *Participant) cancel(t *turn, m protocol.Message, body message.Cancellation) {
	d := p.deals[dealKey{m.Sender, m.Conversation}]
	if d == nil {
		return // nothing is held, so nothing is to be freed
	}
	for _, c := range d.claims {
		if c.state == ClaimHeld && !c.unsure && slices.Contains(body.Reservations, c.id) {
			p.free(t, c, "cancelled by the buyer")
			p.failPending(t, d, protocol.Reason{Code: protocol.CodeExpired, Unit: c.item.Unit, Note: "cancelled"})
		}
	}
}

// expire ends the holds that are over. One that is being checked for a contract
// ends too: nothing has been signed.
func (p *Participant) expire(t *turn, d *deal) {
	for _, c := range d.claims {
		if (c.state != ClaimReserving && c.state != ClaimHeld) || c.unsure || t.now.Before(c.holdUntil) {
			continue
		}
		late := protocol.Reason{Code: protocol.CodeUnavailable, Unit: c.item.Unit, Note: "the batch system did not answer in time"}
		p.failVote(t, d, c.offer, &late, "hold-until passed")
		p.failPending(t, d, protocol.Reason{Code: protocol.CodeExpired, Unit: c.item.Unit, Note: "hold-until passed"})
	}
	p.sweep(t, d)
}
